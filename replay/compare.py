"""What a turn staged against what is recorded, event by event in order, by type and content. Pure.

Equal canonical bytes are equal events; only where the bytes differ are both sides decoded to find the first field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import attrs

from ..agents import facts
from ..agents.compare import first_difference, shown
from ..eventlog.codec import Codec
from ..eventlog.events import Row
from ..eventlog.printing import one_line

Encoded: TypeAlias = "tuple[str, int, bytes]"
"""``(type, schema, bytes)`` of an event, as ``Codec.encode`` gives it."""


@attrs.frozen
class Mismatch:
    """The first recorded event that is not what was decided; ``version`` is its version."""

    version: int
    event: str
    step: int
    subject: str
    recorded: str
    decided: str
    field: str = ""


def compare_staged(codec: Codec, recorded: Sequence[Row], decided: Sequence[Encoded]) -> Mismatch | None:
    """The first difference between a turn's append and what the turn stages now, or ``None``.

    ``decided`` may be shorter when the turn broke off: then only that many are compared. Both end with a closing fact
    otherwise, so a missing or an additional event is met as a difference of types. Raises ``Undecodable``.
    """
    for row, new in zip(recorded, decided, strict=False):
        version, kind, schema, data = row[0], row[1], row[2], row[3]
        if (kind, schema, data) != new:
            found = _differ(codec, version, kind, schema, data, new)
            if found is not None:
                return found
    return None


def _differ(codec: Codec, version: int, kind: str, schema: int, data: bytes, new: Encoded) -> Mismatch | None:
    old = codec.decode(kind, schema, data)
    if codec.encode(old) == new:  # written under an older schema, or not in canonical form, or with fields that the class has lost
        lost = _lost(codec.tree(data), codec.tree(new[2]), "") if schema == new[1] else None
        return Mismatch(version, kind, step_of(old), subject_of(old), lost[1], "(absent)", lost[0]) if lost is not None else None
    fresh = codec.decode(*new)
    step, subject = step_of(old), subject_of(old)
    if step < 0:
        step = step_of(fresh)
    if type(old) is not type(fresh):
        return Mismatch(version, kind, step, subject, describe(old), describe(fresh))
    found = first_difference(old, fresh)
    if not found.path:  # equal in Python, and yet not the same: 1.0 and 1.00, -0.0 and 0.0
        return Mismatch(version, kind, step, subject, shown(old), shown(fresh), "value")
    return Mismatch(version, kind, step, subject, found.left, found.right, found.path)


def _lost(was: Any, now: Any, path: str) -> tuple[str, str] | None:
    """The first field that is recorded and that the class of today has no place for, and what it holds.

    Under the same schema version nothing says that it may go. A field that is new has its default, and may.
    """
    if isinstance(was, dict) and isinstance(now, dict):
        for name, value in was.items():
            place = f"{path}.{name}" if path else str(name)
            if name not in now:
                return place, shown(value)
            if (found := _lost(value, now[name], place)) is not None:
                return found
    elif isinstance(was, list | tuple) and isinstance(now, list | tuple):
        for number, (before, after) in enumerate(zip(was, now, strict=False)):
            if (found := _lost(before, after, f"{path}[{number}]")) is not None:
                return found
    return None


_STEPS: Final = (facts.IntentStaged, facts.TimerArmed, facts.Traced, facts.ApprovalRequested, facts.InputSent, facts.SignalTaken)


def step_of(event: object) -> int:
    """The step an event was staged at, or -1."""
    return event.step if isinstance(event, _STEPS) else -1


def subject_of(event: object) -> str:
    """What an event is about, in a word or two."""
    kind: str = cast("Any", type(event)).__event_type__
    return f"{kind} {event.tool}" if isinstance(event, facts.IntentStaged) else kind


def describe(event: object, width: int = 160) -> str:
    """An event on one line."""
    fields: Any = {field.name: getattr(event, field.name) for field in attrs.fields(cast("Any", type(event)))}
    if isinstance(event, facts.IntentStaged):
        fields = event.args
    elif isinstance(event, facts.Completed):
        fields = {"output": event.output}
    elif isinstance(event, facts.Suspended):
        fields = {"waits": event.waits, "mode": event.mode}
    return f"{subject_of(event)} {one_line(fields, width)}"
