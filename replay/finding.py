"""From an id as people have it in hand to the event: an input's, an intent's, an event's or a correlation's.

Ids are not indexed across streams, so the log is read through once, without payloads; a place (``@1234``,
``accounts-a@17``) is found at once.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Final

from ..agents.app import runtime_codec
from ..agents.intents import input_event_id
from ..eventlog.console import MOST
from ..eventlog.errors import LogError
from ..eventlog.events import StoredEvent
from ..eventlog.inspecting import odd_cells_of
from ..eventlog.log import EventLog
from .errors import NoSuchId
from .fold import At, version_at

_SHORT: Final = re.compile(r"[0-9a-f]{4,8}(?:-[0-9a-f-]*)?")
_STAGED: Final = "intent.staged"
_MOST: Final = 5
_BACK: Final = 64


def find_event(log: EventLog, wanted: str) -> StoredEvent:
    """The event that ``wanted`` names; its payload may be left out. Raises ``NoSuchId``.

    ``@1234`` is a position, ``STREAM@17`` a version; a UUID an event's id, a correlation or an intent's; four to eight
    hexadecimal digits the beginning of an intent's id; anything else an input's id.
    """
    text = wanted.strip().removesuffix("…")
    place = re.fullmatch(r"(.*)@([0-9]{1,19})", text, re.DOTALL)
    if place is not None and int(place[2]) <= MOST and (found := _at(log, place[1], int(place[2]))) is not None:
        return found
    found = next((event for event in log.read_all(types=("input.received",), payloads=False) if event.event_id == input_event_id(text)), None)
    if found is not None:
        return found
    try:
        given = uuid.UUID(text)
    except ValueError:
        if _SHORT.fullmatch(text):
            return _only(log, text, list(_intents(log, text)))
        raise _nowhere(log, f"no input {wanted!r:.120}") from None
    if given.version == 5 and (intents := list(_intents(log, str(given)))):
        return intents[0]
    return event_with_id(log, given.bytes)


_WAYS: Final = "An id is an input's, an intent's (its beginning will do), an event's or a correlation's; a place is @POSITION or STREAM@VERSION."


def _nowhere(log: EventLog, what: str) -> NoSuchId:
    """That the log has not ``what``; and which row a hand has edited, for it may have stood there."""
    odd = next(odd_cells_of(log), None)
    edited = f"It may have stood in a row that is not as it was: {odd.text} " if odd is not None else ""
    return NoSuchId(f"{log.url} has {what}. {edited}{_WAYS}")


def event_with_id(log: EventLog, event_id: bytes, stream: str = "") -> StoredEvent:
    """The event of this id, or the first that is correlated with it; looked for in ``stream`` first. Raises ``NoSuchId``."""
    events: Iterator[StoredEvent]
    correlated: StoredEvent | None = None
    for events in (log.read(stream, payloads=False) if stream else iter(()), log.read_all(payloads=False)):
        for event in events:
            if event.event_id == event_id:
                return event
            if correlated is None and not stream and event.correlation == event_id:
                correlated = event
    if correlated is not None:
        return correlated
    raise _nowhere(log, f"no event {uuid.UUID(bytes=event_id)}, and none that is correlated with it")


def _at(log: EventLog, stream: str, number: int) -> StoredEvent | None:
    if stream:
        return next(iter(log.read(stream, after=number - 1, limit=1)), None)
    found = next(iter(log.read_all(after=number - 1, limit=1)), None)
    return found if found is not None and found.position == number else None


def _intents(log: EventLog, beginning: str) -> Iterator[StoredEvent]:
    codec, needle = runtime_codec(), beginning.encode()
    for event in log.read_all(types=(_STAGED,)):
        if needle in event.data:
            try:
                staged = codec.decode_stored(event)
            except LogError:
                continue
            if staged.intent_id.startswith(beginning):
                yield event


def _only(log: EventLog, text: str, found: list[StoredEvent]) -> StoredEvent:
    if len(found) == 1:
        return found[0]
    if not found:
        raise _nowhere(log, f"no input {text!r} and no intent whose id begins with it")
    places = ", ".join(f"{event.stream}@{event.version}" for event in found[:_MOST])
    raise NoSuchId(f"{text!r} begins the ids of {len(found)} intents: {places}{' …' if len(found) > _MOST else ''}. Name more of the id, or the place.")


def event_near(log: EventLog, stream: str, event_id: bytes, position: int) -> StoredEvent | None:
    """The event of ``stream`` with this id, looked for around ``position`` first: both were written by one append."""
    if log.head(stream) < 0:
        return None
    first = next(iter(log.read(stream, limit=1, payloads=False)))
    begin = max(version_at(log, stream, At(position=position)) - _BACK, 0) if first.position <= position else 0
    for after in dict.fromkeys((begin - 1, -1)):
        for stored in log.read(stream, after=after, payloads=False):
            if stored.event_id == event_id:
                return stored
    return None
