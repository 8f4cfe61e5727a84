"""Everything that can go wrong in the record, as one tree.

::

    LogError
    ├── TerminalError                    trying again cannot help
    │   ├── InvalidName                  a key, agent, stream or type name breaks the grammar (S-1.1, S-1.2)
    │   ├── InvalidUrl                   a log URL that no store understands
    │   ├── RegistrationError            an event type that may not be registered (duplicate, nameless, unsupported field)
    │   ├── Unencodable                  a value that would not come back exactly (S-8.4); names the field
    │   ├── Undecodable                  stored bytes that do not fit their type
    │   │   ├── UnknownEventType         no class is registered under this name (S-8.3)
    │   │   └── NewerSchema              the event was written by newer code (S-8.3)
    │   ├── EventIdConflict              same event id, different bytes (S-2.2)
    │   ├── StoreSchemaError             the store's own tables are missing, or newer than this code
    │   ├── ProjectionFailed             an event did not decode, or its handler raised, and the policy is to stop
    │   └── ProjectionRefused            what was asked of a projection would lose or hide something
    └── RetryableError                   reload, or wait, and try again
        ├── WrongExpectedVersion         the stream moved on; carries what was appended since (S-3.4)
        ├── LeaseLost                    the fencing token is no longer current (S-6.4)
        └── LogUnavailable               the store cannot be reached or is locked

Messages say what was wrong, show the offending value, and name the way out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .events import StoredEvent
    from .versions import ExpectedVersion


class LogError(Exception):
    """Base of every error raised by ``intentlog.eventlog``."""


class TerminalError(LogError):
    """Trying again without changing something cannot help."""


class RetryableError(LogError):
    """The same call may succeed after a reload or a wait."""


class InvalidName(TerminalError):
    """A key, agent, stream or event type name breaks the grammar."""


class InvalidUrl(TerminalError):
    """A log URL that no store understands."""


class RegistrationError(TerminalError):
    """An event type that may not be registered."""


class Unencodable(TerminalError):
    """A value that would not come back exactly; ``field`` is its path inside the event."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Undecodable(TerminalError):
    """Stored bytes that do not fit their type; ``stream`` and ``version`` say where, when known."""

    def __init__(self, message: str, stream: str = "", version: int = -1) -> None:
        super().__init__(message)
        self.stream = stream
        self.version = version

    def at(self, stream: str, version: int) -> Undecodable:
        """The same error, of the same type, with its place in the log in front."""
        return type(self)(f"{stream} version {version}: {self}", stream, version)


class UnknownEventType(Undecodable):
    """No class is registered under the event's type name."""


class NewerSchema(Undecodable):
    """The event was written under a schema version that this code does not know."""


class EventIdConflict(TerminalError):
    """An event id is already in the stream with different bytes."""


class StoreSchemaError(TerminalError):
    """The store's own tables are missing, or were made by a newer release."""


class ProjectionFailed(TerminalError):
    """A projection met an event that it cannot take, and its policy is to stop; ``view`` and ``event`` say where."""

    def __init__(self, message: str, view: str = "", event: StoredEvent | None = None) -> None:
        super().__init__(message)
        self.view = view
        self.event = event


class ProjectionRefused(TerminalError):
    """What was asked of a projection would lose or hide something, for example a swap to a view that is behind."""


class WrongExpectedVersion(RetryableError):
    """The stream was not at the expected version; ``events`` holds what was appended since."""

    def __init__(self, stream: str, expected: ExpectedVersion, actual: int, events: Sequence[StoredEvent] = ()) -> None:
        super().__init__(f"Wrong expected version of {stream}: expected {expected}, it is at {actual}. Reload the stream and decide again.")
        self.stream = stream
        self.expected = expected
        self.actual = actual
        self.events = tuple(events)


class LeaseLost(RetryableError):
    """The fencing token is no longer the current one: somebody else took over."""


class LogUnavailable(RetryableError):
    """The store cannot be reached, or stayed locked for longer than the busy timeout."""
