"""Why a part of a state is as it is, for people and for programs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from ..agents import facts
from ..eventlog.codec import Codec
from ..eventlog.printing import cut, iso, one_line, styled, time_of_day
from .causes import Cause
from .change_lines import blobs_shown, change_lines, value_text
from .diff import diff
from .paths import ABSENT, path_text
from .summaries import Telling, fields_of
from .trees import payload_of
from .why import Touch, Why, Without

_NAMES: Final = 24
_PARTS: Final = 6
_FACTS: Final = frozenset(facts.FACTS)


def why_lines(found: Why, codec: Codec, *, width: int) -> Iterator[str]:
    """The part and its value; the event that made it so; what led there; the changes before."""
    from rich.cells import cell_len

    room = max(width, 60)
    place = cut(one_line(path_text(found.path)), room - 20)
    value = "nothing any more" if found.value is ABSENT else value_text(found.value)
    yield styled(place, bold=True) + cut(f" is {value}  ({one_line(found.stream)} at version {found.at})", room - cell_len(place))
    if found.last is None:
        yield "  No event has changed it: it is what it was before the first one."
        return
    versions = len(str(found.at))
    yield from _touch_lines(found.last, versions, room)
    if found.without is Without.REFUSED:
        yield styled("  Without this event what follows could not have happened.", dim=True)
    elif found.without is Without.SAME:
        others = f"{'version' if len(found.also) == 1 else 'versions'} {', '.join(map(str, found.also))} set it, too" if found.also else "others set it, too"
        yield styled(f"  Without this event alone it would be the same: {others}.", dim=True)
    if found.causes:
        elsewhere = f", in {one_line(found.causes_in)}" if found.causes_in != found.stream else ""
        yield styled(cut(f"because of{elsewhere}", room), bold=True)
        yield from _cause_lines(found.causes, codec, len(str(max(found.at, *(cause.version for cause in found.causes)))), room)
    if found.beyond:
        yield styled(f"  The input was sent by another run: eventlog trace {shlex.quote(one_line(found.beyond))}", dim=True)
    if len(found.changes) > 1:
        yield styled("before that", bold=True)
        for touch in found.changes[1:]:
            yield from _touch_lines(touch, versions, room)
    if found.more:
        yield styled("  … and earlier ones: --most N shows more", dim=True)


def _touch_lines(touch: Touch, versions: int, room: int) -> Iterator[str]:
    head = f"  {time_of_day(touch.recorded_at)}  {touch.version:>{versions}}  "
    name = cut(one_line(touch.type), max(_NAMES, room // 4))
    before, after = value_text(touch.before), value_text(touch.after)
    if _opens(touch.before) and _opens(touch.after):
        yield f"{styled(head, dim=True)}{styled(name, fg='yellow')}"
        yield from (" " * len(head) + line for line in change_lines(diff(touch.before, touch.after), width=room - len(head), most=_PARTS))
        return
    said = f"{before} → {after}"
    if len(head) + max(_NAMES, len(name)) + 2 + len(said) <= room:
        yield f"{styled(head, dim=True)}{styled(f'{name:<{_NAMES}}', fg='yellow')}  {said}"
        return
    yield f"{styled(head, dim=True)}{styled(name, fg='yellow')}"
    for label, text in (("before", before), ("after", after)):
        yield f"{' ' * len(head)}{label:<6}  {cut(text, max(room - len(head) - 8, 20))}"


def _opens(value: Any) -> bool:
    return isinstance(value, dict | list | tuple | set | frozenset) or attrs.has(type(value))


def _cause_lines(causes: Sequence[Cause], codec: Codec, versions: int, room: int) -> Iterator[str]:
    told = _told(causes, codec)
    names = [cut(type(cause.event).__name__ if cause.event is not None else one_line(cause.type), max(_NAMES, room // 4)) for cause in causes]
    wide = max(map(len, names))
    for cause, name, summary in zip(causes, names, told, strict=True):
        head = f"  {time_of_day(cause.recorded_at)}  {cause.version:>{versions}}  "
        left = max(room - len(head) - wide - 2, 8)
        yield f"{styled(head, dim=True)}{styled(f'{name:<{wide}}', fg='blue')}  {cut(summary, left)}"
        if isinstance(cause.event, facts.ModelCallCached):
            yield f"{' ' * len(head)}asked   {cut(one_line(prompt_of(cause.event), 4 * room), max(room - len(head) - 8, 20))}"


def _told(causes: Sequence[Cause], codec: Codec) -> list[str]:
    """A line about each; told oldest first, so that a length of time is known when its end comes."""
    telling = Telling(codec)
    lines = []
    for cause in reversed(causes):
        lines.append(_summary(telling, cause))
        telling.staged.clear()  # whether an outcome came late cannot be told from these events alone
    return lines[::-1]


def _summary(telling: Telling, cause: Cause) -> str:
    if cause.event is None:
        return "cannot be read"
    if type(cause.event) in _FACTS:
        return one_line(telling.summary(cause.event, cause.recorded_at))
    return fields_of({field.name: getattr(cause.event, field.name) for field in attrs.fields(type(cause.event))})


def prompt_of(call: facts.ModelCallCached) -> Any:
    """What the model was asked last: the content of the last message."""
    return call.request.messages[-1].get("content", "") if call.request.messages else ""


def why_tree(found: Why, codec: Codec) -> dict[str, Any]:
    """As ``--json`` prints it; model calls with their whole request and response."""
    return {
        "stream": found.stream,
        "path": path_text(found.path),
        "at": found.at,
        **({"value": blobs_shown(found.value)} if found.value is not ABSENT else {}),
        "changes": [_touch_tree(each) for each in found.changes],
        "more": found.more,
        "without": found.without.value if found.without is not None else None,
        "also": list(found.also),
        "beyond": found.beyond,
        "causes": [
            {
                "stream": found.causes_in,
                "version": each.version,
                "type": each.type,
                "time": iso(each.recorded_at),
                "role": each.role,
                "fields": _fields(each.event, codec),
            }
            for each in found.causes
        ],
    }


def _fields(event: Any, codec: Codec) -> Any:
    shown = blobs_shown(event)
    return shown | {"payload": blobs_shown(payload_of(event, codec))} if isinstance(event, facts.InputReceived) else shown


def _touch_tree(touch: Touch) -> dict[str, Any]:
    sides = {"before": touch.before, "after": touch.after}
    shown = {side: blobs_shown(value) for side, value in sides.items() if value is not ABSENT}
    return {"version": touch.version, "type": touch.type, "time": iso(touch.recorded_at)} | shown
