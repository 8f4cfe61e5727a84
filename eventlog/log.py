"""What every store offers. ``open_log`` gives one of these; the memory store is the shortest reading of it.

Rules of this file: values and protocols only; no store, no driver, no clock.

An *append request* is all-or-nothing. It may write to several streams, each with its own expected version, and it
carries the scheduling that its events cause, so that "which stream needs attention, and when?" is decided by the same
transaction as the events themselves. ``append_batch`` takes many independent requests and makes them durable in **one**
commit; each gets its own outcome, as if they had been made one after the other.

Stores are synchronous and thread-safe. Several processes may use one store at once unless it is ``memory://``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias

import attrs

from .clock import Clock, Micros
from .errors import LogError
from .events import NewEvent, Row, StoredEvent
from .versions import ExpectedVersion


@attrs.frozen
class Wake:
    """When a stream next needs attention in one queue (S: "what is due?" is one indexed question)."""

    queue: str
    #: ``None``: not until somebody says so.
    at: Micros | None
    #: ``True``: only bring the moment forward, never push it back (arrivals); ``False``: set it (the lease's owner).
    sooner: bool = False


@attrs.frozen
class Fence:
    """A claim that must still be held, under this token, when the append commits."""

    queue: str
    name: str
    token: int
    #: Hand the claim back in the same transaction.
    release: bool = False


@attrs.frozen
class StreamAppend:
    """Events for the end of one stream. ``events`` may be empty when only ``wakes`` matter."""

    stream: str
    events: Sequence[NewEvent]
    expected: ExpectedVersion
    wakes: Sequence[Wake] = ()


@attrs.frozen
class AppendRequest:
    """One all-or-nothing write."""

    parts: Sequence[StreamAppend]
    fences: Sequence[Fence] = ()


class Appended(NamedTuple):
    """The request is durable. One entry a part: the version of its first event, and its events' positions."""

    first_versions: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...]


class Duplicate(NamedTuple):
    """Every event was there already, byte for byte; the places are the original ones. Nothing changed, wakes included."""

    first_versions: tuple[int, ...]
    positions: tuple[tuple[int, ...], ...]


Outcome: TypeAlias = Appended | Duplicate | LogError
"""``WrongExpectedVersion``, ``LeaseLost`` and ``EventIdConflict`` come back as values, so one loser spoils no batch."""


class EventLog(Protocol):
    """The record. Facets with their own reasons to change hang off it as attributes."""

    #: The URL it was opened with, credentials masked.
    url: str
    clock: Clock
    #: A server does the writing: commits cost this process little, so it may compute while one is under way.
    served: bool

    @property
    def snapshots(self) -> Snapshots: ...
    @property
    def checkpoints(self) -> Checkpoints: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def views(self) -> Views: ...

    def append(self, stream: str, events: Sequence[NewEvent], expected: ExpectedVersion, *, wakes: Sequence[Wake] = ()) -> Appended | Duplicate:
        """One durable append; raises ``WrongExpectedVersion`` or ``EventIdConflict``."""
        ...

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        """Many independent appends in one durable commit; outcomes in the order of the requests.

        Ids are looked at first: a request whose events are all there already is a ``Duplicate`` whatever it expected.
        Then fences, then expected versions. Raises ``LogUnavailable`` when the commit itself failed or its fate is
        unknown; the same requests may then be sent again.
        """
        ...

    def read(
        self, stream: str, *, after: int = -1, upto: int | None = None, limit: int | None = None, backwards: bool = False, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        """Events of one stream with ``after < version <= upto``, oldest first unless ``backwards``; ``limit`` counts in reading order.

        Streams: memory stays bounded however long the history is. A stream that does not exist is empty. Without
        ``payloads`` every ``data`` is empty, and none is fetched from where they are kept.
        """
        ...

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        """The same range as bare tuples in chunks, for folds."""
        ...

    def rows_of(self, after: Mapping[str, int], *, most: int | None = None) -> dict[str, list[Row]]:
        """The tails of many streams in one round trip: stream → rows with a version above the one given, at most ``most`` of each."""
        ...

    def read_all(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        types: Iterable[str] = (),
        categories: Iterable[str] = (),
        limit: int | None = None,
        payloads: bool = True,
    ) -> Iterator[StoredEvent]:
        """The whole log in commit order with ``after < position <= upto``; empty filters let everything through.

        Never shows an event before all earlier ones are visible. ``payloads`` as in ``read``.
        """
        ...

    def head(self, stream: str) -> int:
        """Version of the stream's last event; -1 when it has none."""
        ...

    def last_position(self) -> int:
        """The position up to which ``read_all`` is complete now; 0 for an empty log."""
        ...

    def streams(self, prefix: str = "") -> Iterator[str]:
        """Names of streams that begin with ``prefix``, in code point order."""
        ...

    def wait(self, after: int, timeout: float) -> bool:
        """Block until ``last_position() > after`` (True) or ``timeout`` seconds have passed (False).

        Appends through this object wake it at once; those of other processes within its polling interval.
        """
        ...

    def close(self) -> None:
        """Give every connection back. Reading or writing afterwards raises ``LogUnavailable``."""
        ...


@attrs.frozen
class Snapshot:
    """A cached fold. Disposable: deleting all of them loses nothing (S-8.2)."""

    version: int
    #: Fingerprint of the folding code and the event schemas; one that does not fit is ignored, never trusted.
    fingerprint: str
    data: bytes


class Snapshots(Protocol):
    """The latest snapshot of each stream."""

    def save(self, stream: str, snapshot: Snapshot) -> None:
        """Keep ``snapshot`` unless a newer version under the same fingerprint is there already."""
        ...

    def load(self, streams: Sequence[str]) -> dict[str, Snapshot]:
        """The snapshots there are, in one round trip."""
        ...

    def delete(self, stream: str | None = None) -> int:
        """Drop one stream's snapshot, or all of them; how many there were."""
        ...


class Checkpoints(Protocol):
    """How far each named subscription has come. A checkpoint never moves back by itself."""

    def load(self, name: str) -> int:
        """The saved position, or 0."""
        ...

    def save(self, name: str, position: int) -> None:
        """Move forward to ``position``; a smaller one than the saved one changes nothing."""
        ...

    def reset(self, name: str) -> None:
        """Back to 0."""
        ...

    def all(self) -> dict[str, int]:
        """Every saved checkpoint by name."""
        ...


class Claim(NamedTuple):
    """A lease on one name in one queue. The token grows with every new owner, for ever."""

    queue: str
    name: str
    token: int
    #: The moment it was due, or ``None`` when it was acquired by name.
    wake_at: Micros | None


class Schedule(Protocol):
    """Who needs attention, when, and who is giving it: leases with fencing tokens over (queue, name)."""

    def claim_due(self, queue: str, owner: str, *, now: Micros, until: Micros, limit: int, categories: Iterable[str] = ()) -> list[Claim]:
        """Lease up to ``limit`` names whose ``wake_at <= now`` and that nobody holds, longest due first."""
        ...

    def acquire(self, queue: str, names: Sequence[str], owner: str, *, now: Micros, until: Micros) -> dict[str, int]:
        """Lease those of ``names`` that nobody else holds, due or not: name → token. One's own live lease is not given again."""
        ...

    def renew(self, claims: Sequence[Claim], *, until: Micros) -> list[Claim]:
        """Push back the end of leases; the ones that were lost meanwhile come back."""
        ...

    def release(self, claims: Sequence[Claim], wake_at: Micros | None = None, *, keep_wake: bool = True) -> None:
        """Hand leases back. The wake-up stays as it is unless ``keep_wake`` is false; then it becomes ``wake_at``."""
        ...

    def wake(self, queue: str, name: str, at: Micros) -> None:
        """Bring a wake-up forward without an event (an operator's doing)."""
        ...

    def next_wake(self, queue: str, *, categories: Iterable[str] = ()) -> Micros | None:
        """The earliest wake-up of a name that nobody holds, or the earliest end of a lease on a due one."""
        ...

    def wakes(self, queue: str, names: Sequence[str]) -> dict[str, Micros | None]:
        """The wake-ups of ``names``, held or not; a name that the queue has never seen is left out."""
        ...

    def due(self, queue: str, *, now: Micros, categories: Iterable[str] = ()) -> int:
        """How many names are due or leased now."""
        ...

    def owners(self) -> set[str]:
        """Everybody who holds a lease, expired ones included."""
        ...

    def evict(self, owner: str) -> int:
        """End every lease of ``owner`` at once (it is known to be dead); how many there were."""
        ...


@attrs.frozen
class ParkedEvent:
    """An event that a projection could not take and was told to step over."""

    #: The view it is missing in, for example ``sums@v1``.
    projection: str
    position: int
    stream: str
    version: int
    error: str
    parked_at: Micros


class View(Protocol):
    """A projection's own table of bytes by key, inside one transaction with its checkpoint."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def delete(self, key: str) -> None: ...
    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Pairs in key order."""
        ...


class ViewTransaction(View, Protocol):
    """Writes and the checkpoint become durable together when the block ends, or not at all when it raises."""

    #: The checkpoint as it stands in this transaction.
    position: int

    def checkpoint(self, position: int) -> None: ...
    def park(self, event: ParkedEvent) -> None:
        """Note an event that is stepped over; one that is parked already gets the new error and time."""
        ...

    def unpark(self, position: int) -> None:
        """Forget this view's parked event at ``position`` (it was handled after all); without one nothing happens."""
        ...


class Views(Protocol):
    """Where projections keep what they build.

    A projection's versions are views of their own (``sums@v1``, ``sums@v2``), and readers ask for ``sums``. Which view a
    name *means* is set by ``point``. Only ``read`` follows it: everything else is of the very view that is named.
    """

    def transaction(self, name: str) -> AbstractContextManager[ViewTransaction]:
        """The view ``name`` for writing; one writer at a time."""
        ...

    def read(self, name: str) -> View:
        """The view that ``name`` means for reading (``put`` and ``delete`` raise ``TypeError``); without a ``point``, ``name`` itself.

        Followed anew by each ``get`` and at the beginning of each ``items``, so that a reader made before a ``point`` sees
        the new view after it. One walk through ``items`` stays with the view that it began with; when that one is
        cleared under it, the walk raises ``LeaseLost`` instead of ending as if it were whole.
        """
        ...

    def point(self, name: str, view: str | None, *, expected: str | None) -> bool:
        """From this commit on ``name`` means ``view`` to every reader in every process; ``None``: it means nothing more.

        False, and nothing has changed, when ``name`` no longer means ``expected`` (``None``: nothing yet), or when the
        checkpoint of ``view`` is behind that of ``expected``. Both are looked at in the transaction that changes the name,
        so a commit to either view at that moment counts as one before it or after it. Durable like an append.
        """
        ...

    def pointed(self) -> dict[str, str]:
        """Every name that means something: name → view."""
        ...

    def clear(self, name: str) -> None:
        """Drop the view's rows, its checkpoint and its parked events, together. A name that means it goes on meaning it."""
        ...

    def parked(self, name: str | None = None) -> list[ParkedEvent]:
        """Events stepped over, oldest first."""
        ...
