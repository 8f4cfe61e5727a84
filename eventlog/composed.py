"""A log in tables as its callers see it; every method belongs to one of the parts that the store puts together.

The methods are those of ``EventLog``, and mean what is said there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from .clock import Clock
from .events import NewEvent, Row, StoredEvent
from .inspecting import Index, Inspector
from .log import Appended, AppendRequest, Duplicate, Outcome, StreamAppend, Wake
from .odd import OddCell
from .reading import Reader
from .versions import ExpectedVersion


class Appender(Protocol):
    """The writing half of a log."""

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]: ...


class Signal(Protocol):
    """Waiting for news."""

    def wait(self, after: int, timeout: float, look: Callable[[], int]) -> bool:
        """Until the log is past ``after`` or ``timeout`` seconds are over; ``look`` asks the database where it is."""
        ...


class ComposedLog:
    """What every log in tables does alike; a store adds the facets, and how it is closed."""

    def __init__(self, url: str, clock: Clock, reader: Reader, appender: Appender, signal: Signal, inspector: Inspector) -> None:
        self.url = url
        self.clock = clock
        self._reader = reader
        self._appender = appender
        self._signal = signal
        self._inspector = inspector

    def append(self, stream: str, events: Sequence[NewEvent], expected: ExpectedVersion, *, wakes: Sequence[Wake] = ()) -> Appended | Duplicate:
        (outcome,) = self._appender.append_batch([AppendRequest([StreamAppend(stream, events, expected, wakes)])])
        if isinstance(outcome, Appended | Duplicate):
            return outcome
        raise outcome

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        return self._appender.append_batch(requests)

    def read(
        self, stream: str, *, after: int = -1, upto: int | None = None, limit: int | None = None, backwards: bool = False, payloads: bool = True
    ) -> Iterator[StoredEvent]:
        return self._reader.read(stream, after, upto, limit, backwards, payloads)

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        return self._reader.rows(stream, after, upto)

    def rows_of(self, after: Mapping[str, int], *, most: int | None = None) -> dict[str, list[Row]]:
        return self._reader.rows_of(after, most)

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
        return self._reader.read_all(after, upto, types, categories, limit, payloads)

    def head(self, stream: str) -> int:
        return self._reader.head(stream)

    def last_position(self) -> int:
        return self._reader.last_position()

    def streams(self, prefix: str = "") -> Iterator[str]:
        return self._reader.streams(prefix)

    def unseen(self) -> Iterator[StoredEvent]:
        return self._inspector.unseen()

    def missing_indexes(self) -> list[Index]:
        return self._inspector.missing_indexes()

    def odd_cells(self, *, events: bool = True) -> Iterator[OddCell]:
        return self._inspector.odd_cells(events=events)

    def wait(self, after: int, timeout: float) -> bool:
        return self._signal.wait(after, timeout, self._reader.last_position)
