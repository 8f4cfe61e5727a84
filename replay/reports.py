"""What the replay commands print: a divergence with both sides under each other, a tree, faults. Text only; no log here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ..eventlog.printing import cut, one_line, plain, styled
from .against import SUBJECT
from .preflight import Outlook, PreflightSummary, RunOutlook, StreamOutlook
from .projected import ProjectionReplay
from .verdicts import Divergence, Kind, StreamReplay, Summary, Verdict
from .verify import StreamReport

_MOST_CHILDREN: Final = 40
_COLOURS: Final = {Verdict.SAME: "green", Verdict.ALLOWED: "green", Verdict.DIVERGED: "red", Verdict.CANNOT: "yellow"}
_WHY: Final = {
    Kind.DRIFT: "The code asks for something else at this step than it did when this was recorded.",
    Kind.MISS: "The code takes a step that was never recorded.",
    Kind.EVENT: "The code decides otherwise than it did when this was recorded.",
    Kind.FAILURE: "The turn ends otherwise than it did when this was recorded.",
    Kind.STATE: "The same events are folded to another state.",
}
_SIDES: Final = ("recorded", "decided")


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
    for excused in replayed.excused if notes else ():
        found = excused.divergence
        yield styled(f"  allowed by line {excused.line}: version {found.version} ({found.event}) {one_line(found.field)}".rstrip(), dim=True)
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
    yield from _sides(found.recorded, found.decided, found.field, width, ("before", "now") if found.subject == SUBJECT else _SIDES)
    yield f"  {_WHY[found.kind]}"
    yield styled(f"  The history around it: eventlog show {_quoted(found.stream)} --from {max(found.version - 5, 0)} --to {found.version + 5}", dim=True)


def _sides(recorded: str, decided: str, field: str, width: int, sides: tuple[str, str] = _SIDES) -> Iterator[str]:
    left, right, start, size = windows(one_line(recorded), one_line(decided), max(width - 16, 20))
    yield f"    {sides[0]:<8}  {left}"
    yield f"    {sides[1]:<8}  {right}"
    if field:
        yield " " * (14 + start) + styled("^" * size, fg="red")


def windows(left: str, right: str, room: int) -> tuple[str, str, int, int]:
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
    for verdict, count in ((Verdict.SAME, total.same), (Verdict.ALLOWED, total.allowed), (Verdict.DIVERGED, total.diverged), (Verdict.CANNOT, total.cannot)):
        if count or verdict is Verdict.SAME:
            parts.append(styled(f"{count} {verdict.value}", fg=_COLOURS[verdict], bold=True))
    looked = f"{' '.join(parts)}  ({counted(total.events, 'event')}, {counted(total.turns, 'turn')}, {counted(total.hits, 'hit')}, no call)"
    if not total.views:
        return looked
    same = total.views - total.views_diverged - total.views_cannot
    other = "".join(f" {count} {word}" for count, word in ((total.views_diverged, "diverged"), (total.views_cannot, "cannot")) if count)
    return f"{looked}, {counted(total.views, 'projection')}: {same} same{other}"


def states_line(total: Summary) -> str:
    """In how many streams the state was compared, and the way out where it was not; empty when no stream has one to compare."""
    of = total.states + total.states_open
    if not of:
        return ""
    way = "; in all of them with --against PATH|REV" if total.states_open else ""
    return f"state compared in {total.states:,} of {counted(of, 'stream')}{way}"


def counted(number: int, word: str) -> str:
    """``1 turn``, ``2,000 turns``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def projection_lines(found: ProjectionReplay, *, width: int) -> Iterator[str]:
    """One projection's verdict, in full when it is not *same*."""
    head = f"projection {one_line(found.view)}  {styled(found.verdict.value, fg=_COLOURS[found.verdict], bold=True)}"
    if found.verdict is Verdict.SAME:
        yield f"{head}  {counted(found.rows, 'row')}"
    elif found.verdict is Verdict.CANNOT:
        yield head
        yield f"  {one_line(found.reason)}"
    else:
        yield f"{head} at row {one_line(found.row)!r}" if found.row else head
        yield from _sides(found.recorded, found.decided, found.row, width)
        yield "  Readers would see rows that this code does not build: raise the projection's version, build it beside, and swap."


def projection_tree(found: ProjectionReplay) -> dict[str, Any]:
    """A projection's verdict as ``--json`` prints it."""
    return {"projection": found.view} | {name: value for name, value in attrs.asdict(found).items() if name != "view"} | {"verdict": found.verdict.value}


_OUTLOOKS: Final = {Outlook.SAFE: "green", Outlook.PATCH: "yellow", Outlook.DIVERGES: "red"}


def outlook_lines(found: StreamOutlook, *, width: int, safe: bool) -> Iterator[str]:
    """The runs under way in one stream; those that are safe only with ``safe``."""
    name = one_line(found.stream)
    if found.reason:
        yield f"{name}  {styled('CANNOT', fg='yellow', bold=True)}"
        yield f"  {one_line(found.reason)}"
    for each in found.runs:
        if safe or each.outlook is not Outlook.SAFE:
            yield from _run_lines(name, each, width)


def _run_lines(name: str, found: RunOutlook, width: int) -> Iterator[str]:
    outlook = styled(found.outlook.value.upper(), fg=_OUTLOOKS[found.outlook], bold=True)
    if found.outlook is Outlook.SAFE:
        yield f"{name}  {outlook}  activation {found.seq}, {found.state}{f': {one_line(found.remark)}' if found.remark else ''}"
        return
    yield f"{name}  {outlook}  at {found.place}, {found.state} after {counted(found.turns, 'turn')}"
    if found.field:
        yield f"  {styled(one_line(found.field), bold=True)}"
    if found.recorded or found.decided:
        yield from _sides(found.recorded, found.decided, found.field, width)
    if found.remark:
        yield f"  {one_line(found.remark)}"
    if found.outlook is Outlook.PATCH:
        yield '  Keep it on the old path: if ctx.patched("NAME"): the new step, else: the old one.'


def outlook_tree(found: StreamOutlook) -> Iterator[dict[str, Any]]:
    """The runs of a stream as ``--json`` prints them: an object a run."""
    if found.reason:
        yield {"stream": found.stream, "outlook": "cannot", "reason": found.reason}
    for each in found.runs:
        yield attrs.asdict(each) | {"outlook": each.outlook.value}


def preflight_line(total: PreflightSummary) -> str:
    """The last line of a preflight."""
    parts = [f"{counted(total.safe + total.patch + total.diverges, 'run')} under way:"]
    for outlook, count in ((Outlook.SAFE, total.safe), (Outlook.PATCH, total.patch), (Outlook.DIVERGES, total.diverges)):
        if count or outlook is Outlook.SAFE:
            parts.append(styled(f"{count} {outlook.value}", fg=_OUTLOOKS[outlook], bold=True))
    if total.cannot:
        parts.append(styled(f"{counted(total.cannot, 'stream')} cannot be looked at", fg="yellow", bold=True))
    return " ".join(parts)


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
        "state": replayed.state.value,
        "notes": list(replayed.notes),
        "excused": [{"line": each.line} | attrs.asdict(each.divergence) | {"kind": each.divergence.kind.value} for each in replayed.excused],
    }


def report_tree(report: StreamReport) -> dict[str, Any]:
    """A stream's report as ``--json`` prints it."""
    return {
        "stream": report.stream,
        "sound": report.sound,
        "events": report.events,
        "unchecked": report.unchecked,
        "unsigned": report.unsigned,
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
    if value is None:
        return "–"
    if isinstance(value, str | list | Mapping) and not value:  # each its own, for code tells them apart
        return '""' if isinstance(value, str) else "[]" if isinstance(value, list) else "{}"
    return one_line(value, 400)
