"""Why looking back was not possible, as one tree below the record's own.

::

    LogError
    └── TerminalError
        └── ReplayError
            ├── NoSuchStream      the log has no stream of this name; names close ones
            │   └── EmptyStream   the log lists it, and none of its events is there
            ├── NoSuchVersion     beyond the head of the stream, or before its first event; names the head
            └── UnknownAgent      the app has no agent for the stream's category
"""

from __future__ import annotations

from ..eventlog.errors import TerminalError


class ReplayError(TerminalError):
    """Base of every error raised by ``intentlog.replay``."""


class NoSuchStream(ReplayError):
    """The log has no stream of this name."""


class EmptyStream(NoSuchStream):
    """The log lists a stream of this name, but not one of its events is there. No append leaves that behind."""


class NoSuchVersion(ReplayError):
    """There is no such place in the stream."""


class UnknownAgent(ReplayError):
    """The app has no agent for the stream's category."""
