"""A fork beside its source: which events are others, which part of the state. Text and trees; no log is written here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

import attrs

from ...agents.app import App
from ...eventlog.log import EventLog
from ...eventlog.names import category_of
from ...eventlog.printing import cut, iso, one_line, styled
from ..change_lines import change_lines, change_tree
from ..diff import diff
from ..fold import state_as_tree, state_at
from ..paths import ABSENT, Path
from ..story import Line, story
from .bringing_back import Merge
from .going_on import WhatIf, Why

_MOST_LINES: Final = 60
_MOST_UNSAID: Final = 4
_TIMES: Final = ("now", "deadline", "expires_at", "fires_at", "retry_at")
"""Fields of the runtime's events that are moments in µs."""
_MOST_COMPARED: Final = 5_000


@attrs.frozen
class Difference:
    """One stretch of events: on both sides, on the source only, or on the fork only."""

    #: ``same``, ``source`` or ``fork``.
    side: str
    lines: tuple[Line, ...]


def differences(log: EventLog, app: App, fork: WhatIf) -> list[Difference]:
    """The events from the first change on, side by side; at the most 5,000 of each are looked at.

    What later inputs of the source led to is left out: behind the version that was forked at they have not happened.
    """
    first, mine = fork.first, fork.log
    kept = {piece.origin for piece in fork.beside}
    there = story(log, fork.stream, app, first=first, last=min(len(fork.source) - 1, first + _MOST_COMPARED))
    left = [line for line in there if line.stored.version in kept]
    right = list(story(mine, fork.stream, app, first=first, last=min(len(fork.pieces) - 1, first + _MOST_COMPARED)))
    keys = [[fork.like(line.stored) for line in side] for side in (left, right)]
    found: list[Difference] = []
    for what, a, b, c, d in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if what == "equal":
            found.append(Difference("same", tuple(right[c:d])))
            continue
        if a < b:
            found.append(Difference("source", tuple(left[a:b])))
        if c < d:
            found.append(Difference("fork", tuple(right[c:d])))
    return found


def fork_lines(log: EventLog, app: App, fork: WhatIf, *, width: int) -> Iterator[str]:
    """The whole answer for a terminal: events, state, and where it stops."""
    yield from _event_lines(differences(log, app, fork), width)
    changes = diff(_state(log, app, fork, mine=False), _state(log, app, fork, mine=True))
    yield styled(f"the state, from the source at version {_compared_at(fork)} to the fork at {len(fork.pieces) - 1}", bold=True)
    if changes:
        yield from (f"  {line}" for line in change_lines(changes, width=width - 2))
    else:
        yield "  the same"
    yield stop_line(fork, width)


def _event_lines(found: Sequence[Difference], width: int) -> Iterator[str]:
    yield styled("events: - of the source only, + of the fork only", bold=True)
    shown = 0
    beside: dict[str, Line] = {}
    for each in found:
        if each.side == "same":
            versions = f"{each.lines[0].stored.version} to {each.lines[-1].stored.version}" if len(each.lines) > 1 else f"{each.lines[0].stored.version}"
            yield styled(f"  = {versions}  the same", dim=True)
            beside = {}
            continue
        sign, colour = ("-", "red") if each.side == "source" else ("+", "green")
        for line in each.lines:
            shown += 1
            if shown > _MOST_LINES:
                yield f"  … more: eventlog show {one_line(line.stored.stream)}, here and there"
                return
            head = f"{cut(one_line(line.name), 24):<24}  "
            said = head + cut(one_line(line.summary), max(width - len(head) - 10, 10))
            yield styled(f"  {sign} {line.stored.version:>4}  ", fg=colour) + styled(said[: len(head)], fg=colour) + said[len(head) :]
            if each.side == "source":
                beside[said] = line
            elif said in beside:
                yield from (styled(f"{'':10}{cut(text, max(width - 10, 10))}", dim=True) for text in _unsaid(beside[said], line))
    if not found:
        yield styled("  none from the first change on", dim=True)


def _unsaid(before: Line, after: Line) -> Iterator[str]:
    """What differs in two events whose lines read alike."""
    changes = [change for change in diff(before.content, after.content) if change.path[:1] != ("seen",)]
    for change in changes[:_MOST_UNSAID]:
        yield f"{'.'.join(map(str, change.path)) or 'value'}: {_told(change.path, change.before)} → {_told(change.path, change.after)}"
    if len(changes) > _MOST_UNSAID:
        yield f"… and {len(changes) - _MOST_UNSAID} more"


def _told(path: Path, value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    return iso(value) if path[-1:] and path[-1] in _TIMES and isinstance(value, int) and value > 0 else one_line(value, 60)


def _state(log: EventLog, app: App, fork: WhatIf, *, mine: bool) -> Any:
    """The aggregate and what the agent is at; without what every run counts."""
    if app.definitions[category_of(fork.stream)].agent.state is None:
        return None
    return state_as_tree(fork.state if mine else state_at(log, app, fork.stream, _compared_at(fork)))["state"]


def _compared_at(fork: WhatIf) -> int:
    """The source's last version before an input that the fork knows nothing of."""
    later = (event.version for event in fork.source[fork.upto + 1 :] if event.type == "input.received")
    return next(later, len(fork.source)) - 1


def stop_line(fork: WhatIf, width: int) -> str:
    """Where the fork stops, and why."""
    text = fork.stop.why.value + (f": {one_line(fork.stop.text)}" if fork.stop.text else "")
    colour = "green" if fork.stop.why is Why.DONE else "yellow"
    return styled("it ends here: ", bold=True) + styled(text if len(text) <= 4 * width else cut(text, 4 * width), fg=colour)


def fork_tree(log: EventLog, app: App, fork: WhatIf) -> dict[str, Any]:
    """The same as ``--json`` prints it."""
    apart = [each for each in differences(log, app, fork) if each.side != "same"]
    changes = diff(_state(log, app, fork, mine=False), _state(log, app, fork, mine=True))
    return {
        "stream": fork.stream,
        "forked_at": fork.upto,
        "first_change": fork.first,
        "edits": list(fork.edits.as_texts()),
        "differs": bool(changes or apart),
        "events": [{"side": each.side, "events": [line.as_tree() for line in each.lines]} for each in differences(log, app, fork) if each.side != "same"],
        "state": [change_tree(change) for change in changes],
        "stopped": fork.stop.why.name.lower(),
        "why": fork.stop.text,
        "step": fork.stop.step,
        "unused_outcomes": [piece.origin for piece in fork.unused],
    }


def merge_lines(merge: Merge, app: App, *, width: int) -> Iterator[str]:
    """What a merge will do, or why it will not."""
    record, plan = merge.record, merge.plan
    yield styled(f"{one_line(record.stream)}, forked from {one_line(record.source)} at version {record.upto} by {one_line(record.by)}", bold=True)
    for each in plan.conflicts:
        yield f"  {styled('conflict', fg='red', bold=True)}  {one_line(each.what)}: {one_line(each.why)}"
        yield f"    source  {cut(one_line(each.source), max(width - 12, 20))}"
        yield f"    fork    {cut(one_line(each.fork), max(width - 12, 20))}"
    if plan.conflicts:
        yield "  Nothing is written."
        return
    for version, piece in enumerate(plan.bring, merge.source_head + 1):
        fact = app.codec.decode(piece.type, piece.schema, piece.data)
        values = {field.name: getattr(fact, field.name) for field in attrs.fields(type(fact))}
        head = f"  {styled('bring', fg='green')}  {version:>4}  {cut(piece.type, 24):<24}  "
        yield head + cut(one_line(values), max(width - 42, 10))
    for outcome in plan.settle_fork:
        yield f"  {styled('end', fg='yellow')}    on the fork: {outcome.intent_id}  {outcome.settled.status}  {one_line(outcome.settled.reason)}"
    yield from (styled(f"  note: {one_line(each)}", dim=True) for each in plan.notes)
    if not plan.bring:
        yield "  The source has all of it: nothing is brought."
    if record.live:
        yield "  The fork goes on no more."


def merge_tree(merge: Merge) -> dict[str, Any]:
    """The same as ``--json`` prints it; ``written`` is how many events the source got."""
    plan = merge.plan
    return {
        "fork": merge.record.stream,
        "source": merge.record.source,
        "conflicts": [attrs.asdict(each) for each in plan.conflicts],
        "bring": [{"type": piece.type, "fork_event_id": piece.event_id.hex()} for piece in plan.bring],
        "settle_fork": [{"intent_id": each.intent_id, "status": each.settled.status, "reason": each.settled.reason} for each in plan.settle_fork],
        "notes": list(plan.notes),
        "written": 0,
    }
