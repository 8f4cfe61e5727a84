"""What every dedup store promises: one claim at a time, attempts that are never forgotten, one outcome an intent.

::

    free ──claim──→ claimed ──attempt──→ claimed, attempts + 1 ──complete──→ done ──expires──→ free
      ↑                │ release, or the lease runs out: free again, attempts kept
      └────────────────┘

Each arrow is one atomic, durable transition. All moments are the caller's, in µs since 1970: whether a lease has run out or
a result has expired is decided at read time against ``now``, never by a store's own clock or clean-up.
"""

from __future__ import annotations

from typing import Protocol, Self

import attrs

from ...eventlog.clock import Micros


@attrs.frozen
class Claimed:
    """The intent is the caller's until its lease runs out."""

    #: Fencing token; grows with every claim of the intent.
    token: int
    #: Attempts recorded by owners whose end was never seen. More than 0: the tool may have run (S-6.5).
    attempts: int


@attrs.frozen
class Busy:
    """Somebody holds the intent; wait, never skip (S-6.6)."""

    until: Micros
    owner: str = ""


@attrs.frozen
class Done:
    """The intent has an outcome: the one to publish, whoever found it."""

    status: str
    result: bytes = attrs.field(repr=lambda value: f"<{len(value)} bytes>")


@attrs.frozen
class Free:
    """Nobody holds the intent, and it has no outcome."""

    #: As in ``Claimed``.
    attempts: int


class DedupStore(Protocol):
    """Synchronous; any thread may call. Every method raises ``StoreUnavailable`` while the store cannot be reached, and
    ``ValueError`` for ids, owners or moments that no store takes (``checking``).
    """

    @property
    def url(self) -> str:
        """Where it is, credentials masked."""
        ...

    @property
    def shared(self) -> bool:
        """Whether effectors in other processes can be on it."""
        ...

    @property
    def caveats(self) -> tuple[str, ...]:
        """What it may forget the way it is set up, a sentence each; for the log at start, and for health."""
        ...

    def claim(self, intent_id: str, owner: str, *, now: Micros, until: Micros) -> Claimed | Busy | Done:
        """Take the intent until ``until``, unless somebody holds it (an ``owner`` of the same name too) or it has an outcome."""
        ...

    def attempt(self, intent_id: str, token: int, *, now: Micros) -> int:
        """Record, durably, that the tool is about to be called; the attempt's number (S-6.4).

        Raises ``StaleToken`` when the claim is somebody else's or has run out at ``now``, ``AlreadyDone`` when there is an outcome.
        """
        ...

    def complete(self, intent_id: str, token: int, result: bytes, *, status: str, now: Micros, expires_at: Micros) -> None:
        """Store the outcome, kept at least until ``expires_at``. The first one is final (S-6.2).

        A claim that has run out still completes while nobody else took it. The same outcome again under the same token
        changes nothing. Raises ``AlreadyDone`` with the outcome that stands when there is another, ``StaleToken`` when
        the claim is somebody else's, ``ResultTooLarge``.
        """
        ...

    def release(self, intent_id: str, token: int) -> None:
        """Hand back a claim whose tool was not called: the next claim succeeds at once, and ``token`` is stale from here on.

        Does nothing when the claim is no longer the caller's.
        """
        ...

    def renew(self, intent_id: str, token: int, *, until: Micros, now: Micros) -> bool:
        """Extend the lease; never shortens it, even when the caller's clock went back. ``False``: the claim is lost."""
        ...

    def look(self, intent_id: str, *, now: Micros) -> Done | Busy | Free:
        """What a claim would find, changing nothing: how a stored outcome beats an expiry (S-6.3)."""
        ...

    def ping(self) -> None:
        """Return when the store answers; raises at once otherwise."""
        ...

    def __enter__(self) -> Self:
        """Itself; the end of the ``with`` block closes it."""
        ...

    def __exit__(self, *error: object) -> None:
        """``close``."""
        ...

    def close(self) -> None:
        """Let go of every connection; every later call raises ``StoreUnavailable``. Closing twice is fine."""
        ...
