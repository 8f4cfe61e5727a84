"""What the replay commands print: a divergence with both sides under each other, a tree, faults. Text only; no log here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ..eventlog.printing import cut, one_line, plain, styled
from .verdicts import Divergence, Kind, StreamReplay, Summary, Verdict
from .verify import StreamReport

_MOST_CHILDREN: Final = 40
_COLOURS: Final = {Verdict.SAME: "green", Verdict.DIVERGED: "red", Verdict.CANNOT: "yellow"}
_WHY: Final = {
    Kind.DRIFT: "The code asks for something else at this step than it did when this was recorded.",
    Kind.MISS: "The code takes a step that was never recorded.",
    Kind.EVENT: "The code decides otherwise than it did when this was recorded.",
    Kind.FAILURE: "The turn ends otherwise than it did when this was recorded.",
}


def replay_lines(replayed: StreamReplay, *, width: int, notes: bool) -> Iterator[str]:
    """One stream's verdict, in full when it is not *same*."""
    name = one_line(replayed.stream)
    verdict = styled(replayed.verdict.value, fg=_COLOURS[replayed.verdict], bold=True)
    if replayed.divergence is not None:
        yield from divergence_lines(replayed.divergence, width=width)
    elif replayed.verdict is Verdict.CANNOT:
        yield f"{name}  {verdict}"
        yield f"  {one_line(replayed.reason)}"
    else:
        yield f"{name}  {verdict}  {counted(replayed.turns, 'turn')}, {counted(replayed.hits, 'hit')}"
    if notes:
        for each in replayed.notes:
            yield styled(f"  note: {one_line(each)}", dim=True)


def divergence_lines(found: Divergence, *, width: int) -> Iterator[str]:
    """Where, which field, both sides with what differs marked, and what to do next.

    ``width`` is the number of columns; longer sides show the part around their first difference.
    """
    verdict = styled("diverged", fg="red", bold=True)
    yield f"{one_line(found.stream)}  {verdict} at version {found.version} ({found.event})"
    yield f"  {found.place}"
    if found.field:
        yield f"  {styled(one_line(found.field), bold=True)}"
    left, right, start, size = _windows(one_line(found.recorded), one_line(found.decided), max(width - 16, 20))
    yield f"    recorded  {left}"
    yield f"    decided   {right}"
    if found.field:
        yield " " * (14 + start) + styled("^" * size, fg="red")
    yield f"  {_WHY[found.kind]}"
    yield styled(f"  The history around it: eventlog show {_quoted(found.stream)} --from {max(found.version - 5, 0)} --to {found.version + 5}", dim=True)


def _windows(left: str, right: str, room: int) -> tuple[str, str, int, int]:
    """Both texts cut to ``room`` around their first difference, and where and how long the marker under the second is."""
    from rich.cells import cell_len

    begin = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    end = 0
    while end < min(len(left), len(right)) - begin and left[-1 - end] == right[-1 - end]:
        end += 1
    size = max(len(right) - begin - end, 1)
    if max(len(left), len(right)) > room and begin > room // 2:
        shift = begin - room // 3
        left, right, begin = "…" + left[shift + 1 :], "…" + right[shift + 1 :], begin - shift
    start = cell_len(right[:begin])
    return cut(left, room), cut(right, room), start, max(min(size, room - start), 1)


def _quoted(stream: str) -> str:
    import shlex

    return shlex.quote(one_line(stream))


def summary_line(total: Summary) -> str:
    """The last line of a replay."""
    parts = [f"{counted(total.streams, 'stream')}:"]
    for verdict, count in ((Verdict.SAME, total.same), (Verdict.DIVERGED, total.diverged), (Verdict.CANNOT, total.cannot)):
        if count or verdict is Verdict.SAME:
            parts.append(styled(f"{count} {verdict.value}", fg=_COLOURS[verdict], bold=True))
    return f"{' '.join(parts)}  ({counted(total.events, 'event')}, {counted(total.turns, 'turn')}, {counted(total.hits, 'hit')}, no call)"


def counted(number: int, word: str) -> str:
    """``1 turn``, ``2,000 turns``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def replay_tree(replayed: StreamReplay) -> dict[str, Any]:
    """A verdict as ``--json`` prints it."""
    found = replayed.divergence
    return {
        "stream": replayed.stream,
        "verdict": replayed.verdict.value,
        "events": replayed.events,
        "turns": replayed.turns,
        "hits": replayed.hits,
        "misses": replayed.misses,
        "drifts": replayed.drifts,
        "divergence": attrs.asdict(found) | {"kind": found.kind.value} if found is not None else None,
        "reason": replayed.reason,
        "notes": list(replayed.notes),
    }


def report_tree(report: StreamReport) -> dict[str, Any]:
    """A stream's report as ``--json`` prints it."""
    return {
        "stream": report.stream,
        "sound": report.sound,
        "events": report.events,
        "unchecked": report.unchecked,
        "foreign": report.foreign,
        "faults": [{"version": each.version, "kind": each.kind.name.lower(), "text": each.text, "count": each.count} for each in report.faults.values()],
        "open_intents": [attrs.asdict(each) for each in report.open_intents],
        "snapshot_ignored": report.snapshot_ignored,
    }


def fault_lines(report: StreamReport) -> Iterator[str]:
    """The faults of a stream, a line each."""
    for each in sorted(report.faults.values(), key=lambda fault: fault.version):
        more = f"  (and {each.count - 1:,} more)" if each.count > 1 else ""
        place = f"{one_line(report.stream)} version {each.version}" if report.stream else "the log"
        yield f"{place}: {styled(each.kind.value, fg='red', bold=True)}{more}"
        yield f"  {one_line(each.text)}"


def tree_lines(value: Any, *, width: int, indent: int = 0) -> Iterator[str]:
    """A tree as indented lines; containers beyond 40 children are cut, with how many more there are."""
    tree = plain(value) if indent == 0 else value
    items = list(tree.items()) if isinstance(tree, Mapping) else [(str(place), each) for place, each in enumerate(tree)]
    shown = items[:_MOST_CHILDREN]
    names = max((len(one_line(name)) for name, each in shown if not _opens(each, width)), default=0)
    for name, each in shown:
        label = one_line(name)
        if _opens(each, width):
            yield f"{' ' * indent}{styled(label, bold=True)}"
            yield from tree_lines(each, width=width, indent=indent + 2)
        else:
            head = f"{' ' * indent}{label:<{min(names, 30)}}  "
            yield head + cut(_leaf(each), max(width - len(head), 10))
    if len(items) > len(shown):
        yield f"{' ' * indent}… and {len(items) - len(shown):,} more"


def _opens(value: Any, width: int) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and set(value) != {"$bytes"}
    return isinstance(value, list) and bool(value) and len(_leaf(value)) > min(width, 100) - 24


def _leaf(value: Any) -> str:
    if isinstance(value, Mapping) and set(value) == {"$bytes"}:
        return f"{len(value['$bytes']) * 3 // 4 - value['$bytes'].count('=')} bytes"
    if value is None or (isinstance(value, str | list | Mapping) and not value):
        return "–"
    return one_line(value, 400)
