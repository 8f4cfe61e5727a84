"""How the library's events lie in the log, both ways. Nothing here reads or writes.

* The stream of an aggregate is ``<category>-<originator id>``; a UUID in its hyphenated form.
* ``type`` is the topic and ``data`` the state, byte for byte as the mapper, compressor and cipher left it.
* Our versions count from 0, the library's from 1, or from 0 where ``INITIAL_VERSION`` says so. ``schema`` tells which:
  1 for streams that begin with version 1, 2 for those that begin with 0.
* How far an upstream application has been followed stands in ``<category>.tracking-<application name>``.
"""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

import attrs
from eventsourcing.persistence import DataError, IntegrityError, Notification, StoredEvent, Tracking

from .. import wire
from ..errors import InvalidName
from ..events import NewEvent
from ..events import StoredEvent as LogEvent
from ..names import check_agent, check_stream, split_stream

DEFAULT_CATEGORY: Final = "aggregate"
TRACKING_TYPE: Final = "tracking.recorded"
_TRACKING_SUFFIX: Final = ".tracking"
#: First originator version of a stream → ``schema`` of its events.
_SCHEMAS: Final = {1: 1, 0: 2}
_STARTS: Final = {schema: start for start, schema in _SCHEMAS.items()}


@attrs.frozen
class Layout:
    """Where one application's aggregates stand in a log, and what kind of ids they have.

    Raises ``InvalidName`` for a category that is no agent name, or that would hold another category's tracking.
    """

    category: str = attrs.field(default=DEFAULT_CATEGORY)
    id_type: Literal["uuid", "text"] = "uuid"

    @category.validator
    def _check_category(self, _: object, value: str) -> None:
        if check_agent(value).endswith(_TRACKING_SUFFIX):
            raise InvalidName(f"The category {value!r} ends in {_TRACKING_SUFFIX!r}, where tracking is kept. Choose another name, for example 'account'.")

    def stream(self, originator_id: UUID | str) -> str:
        """The stream of an aggregate, unchecked: a read of a name that cannot exist is empty."""
        return f"{self.category}-{originator_id}"

    def checked_stream(self, originator_id: UUID | str) -> str:
        """The stream of an aggregate that is to be written. Raises ``DataError`` for text where UUIDs are expected, ``InvalidName`` (S-1.1)."""
        if self.id_type == "uuid" and not isinstance(originator_id, UUID):
            raise DataError(f"The originator id {originator_id!r:.80} is not a UUID. For aggregates with text ids set ORIGINATOR_ID_TYPE=text.")
        return check_stream(self.stream(originator_id))

    def tracking_stream(self, application_name: str) -> str:
        """The stream that holds how far ``application_name`` has been followed."""
        return f"{self.category}{_TRACKING_SUFFIX}-{application_name}"

    def new_event(self, stored: StoredEvent, start: int, event_id: bytes) -> NewEvent:
        """``stored`` as an event of a stream that begins with originator version ``start``."""
        return NewEvent(event_id, stored.topic, _SCHEMAS[start], stored.state)

    def stored_event(self, event: LogEvent) -> StoredEvent:
        """The library's event as it was given to ``new_event``."""
        return StoredEvent(self._originator_id(event), event.version + start_of(event), event.type, event.data)

    def notification(self, event: LogEvent) -> Notification:
        """The same with its place in the whole log."""
        return Notification(self._originator_id(event), event.version + start_of(event), event.type, event.data, event.position)

    def _originator_id(self, event: LogEvent) -> UUID | str:
        text = split_stream(event.stream)[1]
        if self.id_type == "text":
            return text
        try:
            return UUID(text)
        except ValueError as error:
            raise DataError(f"Stream {event.stream} does not bear a UUID. Were its events written with ORIGINATOR_ID_TYPE=text?") from error


def start_of(event: LogEvent) -> int:
    """The originator version that the event's stream begins with. Raises ``DataError`` for an event that a recorder did not write."""
    start = _STARTS.get(event.schema)
    if start is None:
        raise DataError(
            f"{event.stream} version {event.version} ({event.type}, schema {event.schema}) was not written by an aggregate of the eventsourcing library. "
            "Give those aggregates a category of their own with EVENTLOG_CATEGORY."
        )
    return start


def check_start(stream: str, first: int) -> int:
    """``first`` itself when a new stream may begin with it, else ``IntegrityError``: the log accepts no holes."""
    if first not in _SCHEMAS:
        raise IntegrityError(f"{stream} is empty, and version {first} cannot be its first: a stream begins with originator version 1, or 0, and has no holes.")
    return first


def tracking_event(tracking: Tracking, event_id: bytes) -> NewEvent:
    """The event that records ``tracking``."""
    return NewEvent(event_id, TRACKING_TYPE, 1, wire.write({"notification_id": tracking.notification_id}))


def tracked_id(event: LogEvent) -> int:
    """The notification id of a ``tracking_event``."""
    return int(wire.read(event.data)["notification_id"])
