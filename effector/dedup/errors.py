"""Everything that can go wrong between an effector and its dedup store, as one tree.

::

    DedupError
    ├── TerminalDedupError               trying again cannot help
    │   ├── InvalidDedupUrl              a URL that no store understands
    │   ├── ClientMissing                the store's client library is not installed
    │   ├── DedupSchemaError             the store's tables are missing, somebody else's, or of a newer release
    │   ├── StoreUnfit                   the store answers, but is set up so that it would break its promises
    │   └── ResultTooLarge               a result that no store takes
    └── RetryableDedupError              claim again, or wait
        ├── StaleToken                   the claim is somebody else's, was handed back, or ran out (S-6.4)
        │   └── AlreadyDone              … and there is an outcome, which it carries (S-6.2)
        └── StoreUnavailable             the store cannot be reached, is full, or stayed locked

Messages show URLs without their credentials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .store import Done


class DedupError(Exception):
    """Base of every error that a dedup store raises on purpose."""


class TerminalDedupError(DedupError):
    """Trying again without changing something cannot help."""


class RetryableDedupError(DedupError):
    """Another claim, or the same call after a wait, may succeed."""


class InvalidDedupUrl(TerminalDedupError):
    """A URL that no dedup store understands."""


class ClientMissing(TerminalDedupError):
    """The store's client library is not installed; names the extra that brings it."""


class DedupSchemaError(TerminalDedupError):
    """The store's own tables are missing, belong to something else, or were made by a newer release."""


class StoreUnfit(TerminalDedupError):
    """The store answers, but may forget what it promised, or refuses what an effector needs."""


class ResultTooLarge(TerminalDedupError):
    """A result larger than any store takes; nothing was written."""


class StaleToken(RetryableDedupError):
    """The fencing token is no longer current: nothing was written (S-6.4)."""


class AlreadyDone(StaleToken):
    """Somebody else's outcome was first and is final (S-6.2); ``done`` is what to publish."""

    def __init__(self, message: str, done: Done) -> None:
        super().__init__(message)
        self.done = done


class StoreUnavailable(RetryableDedupError):
    """The store cannot be reached; whether the last transition took effect may be unknown."""
