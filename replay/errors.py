"""Why looking back was not possible, as one tree below the record's own.

::

    LogError
    └── TerminalError
        └── ReplayError
            ├── NoSuchStream      the log has no stream of this name; names close ones
            │   └── EmptyStream   the log lists it, and none of its events is there
            ├── BrokenHistory     a stream lacks a version, or has one twice; names it
            ├── NoSuchVersion     beyond the head of the stream, or before its first event; names the head
            ├── UnknownAgent      the app has no agent and no aggregate for the stream's category
            ├── BadPath           a path into a state that cannot be read
            ├── NoSuchPath        a path under which nothing ever stood
            ├── BadExpression     a condition that may not be said, or cannot be evaluated; names the part
            ├── CannotBisect      there is nothing to search between, or no side of it can be told
            ├── BadAllowList      a line of an allow-list cannot be read
            ├── CodeUnusable      the code to replay with cannot be had, or its app cannot be loaded
            ├── NoSuchId          the log has nothing under this id
            ├── BrokenChain       a file of digests that is none, or is not whole
            ├── BrokenBundle      a file that is no bundle, or is not whole
            ├── BundleIsReadOnly  a bundle was asked to take a write
            ├── Unredactable      a path to redact that names nothing, or nothing that can be replaced
            ├── ForkRefused       this what-if cannot be had; nothing was written
            └── MergeRefused      this fork cannot be brought back; nothing was written
"""

from __future__ import annotations

from ..eventlog.errors import TerminalError


class ReplayError(TerminalError):
    """Base of every error raised by ``intentlog.replay``."""


class NoSuchStream(ReplayError):
    """The log has no stream of this name."""


class EmptyStream(NoSuchStream):
    """The log lists a stream of this name, but not one of its events is there. No append leaves that behind."""


class BrokenHistory(ReplayError):
    """A stream lacks a version, or has one twice; the message names the first. No append leaves that behind."""


class NoSuchVersion(ReplayError):
    """There is no such place in the stream."""


class UnknownAgent(ReplayError):
    """The app has no agent and no aggregate for the stream's category."""


class BadPath(ReplayError):
    """A path into a state that cannot be read; the message names the place."""


class NoSuchPath(ReplayError):
    """Nothing ever stood under this path; the message names what there is."""


class BadExpression(ReplayError):
    """A condition says what it may not, or a part of it cannot be evaluated; the message names the part."""


class CannotBisect(ReplayError):
    """There is nothing to search between, or neither side of it can be told; the message says why."""


class BadAllowList(ReplayError):
    """A line of an allow-list cannot be read; the message names it."""


class CodeUnusable(ReplayError):
    """The code to replay with cannot be had, or its app cannot be loaded."""


class NoSuchId(ReplayError):
    """Nothing in the log has this id."""


class BrokenBundle(ReplayError):
    """The file is no bundle, was cut or edited, is too large, or was made by a newer release."""


class BundleIsReadOnly(ReplayError):
    """A bundle takes no writes."""


class Unredactable(ReplayError):
    """A path to redact cannot be read, names nothing, or names what an event cannot do without."""


class ForkRefused(ReplayError):
    """This what-if cannot be had; the message says why. Nothing was written."""


class NameTaken(ForkRefused):
    """Somebody else has forked under the name since it was looked for."""


class MergeRefused(ReplayError):
    """This fork cannot be brought back; the message says why. Nothing was written."""


class BrokenChain(ReplayError):
    """A file of digests (``eventlog verify --chain-out``) is none, or is not whole."""
