"""An event as the stores see it: bytes with a name, a place and a few columns.

``NewEvent`` is staged, ``StoredEvent`` is recorded. Neither knows what the bytes mean; that is the codec's job, so
one store serves every program, and a store never fails because a class is gone.
"""

from __future__ import annotations

import uuid
from typing import NamedTuple, TypeAlias

import attrs


@attrs.frozen(slots=True)
class NewEvent:
    """An event that has been encoded and not yet appended."""

    #: 16 bytes, unique in its stream: appending the same id with the same bytes again changes nothing.
    event_id: bytes
    #: The registered name, for example ``intent.staged``.
    type: str
    #: The schema version the bytes were written under.
    schema: int
    #: Canonical bytes of the event (see ``codec``).
    data: bytes
    #: Event id of the input that began the run of events this one belongs to.
    correlation: bytes | None = None
    #: Event id of the direct cause.
    causation: bytes | None = None


class StoredEvent(NamedTuple):
    """An event as it stands in the log. A tuple, because a long history makes millions of them."""

    #: Place in the whole log: opaque, growing.
    position: int
    stream: str
    #: Place in the stream, from 0, without holes.
    version: int
    event_id: bytes
    type: str
    schema: int
    data: bytes
    #: When the append was made: microseconds since 1970-01-01 UTC.
    recorded_at: int
    correlation: bytes | None
    causation: bytes | None

    @property
    def id(self) -> uuid.UUID:
        """The event id as a UUID."""
        return uuid.UUID(bytes=self.event_id)


Row: TypeAlias = "tuple[int, str, int, bytes, bytes, int]"
"""What a fold needs of an event: ``(version, type, schema, data, event_id, recorded_at)``; a bare tuple for speed."""
