"""What reading a log in tables has in common, whatever the database: the shapes of its statements, and rows that become events.

What a read covers is fixed when it is asked for, and its first chunk is fetched then; only the rest is lazy.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final, TypeAlias, cast

import attrs

from .events import Row, StoredEvent

NO_END: Final = (1 << 63) - 1
STREAMS_AT_ONCE: Final = 256
NAMES_AT_ONCE: Final = 1_000
#: Where the columns of an event, in the order of ``StoredEvent``, and those of a row have what walking them needs.
VERSION_IN_EVENT: Final = 2
DATA_IN_EVENT: Final = 6
VERSION_IN_ROW: Final = 0
DATA_IN_ROW: Final = 3
#: What ``StoredEvent._make`` does, without its check of the length.
to_event: Final = cast("Callable[[Sequence[Any]], StoredEvent]", partial(tuple.__new__, StoredEvent))


@attrs.frozen
class Shape:
    """A statement that reads a range of one stream, and where its rows keep what walking them needs."""

    sql: str
    version: int
    content: int
    backwards: bool = False
    payloads: bool = True


Selected: TypeAlias = "Callable[[str, bool], str]"
"""``selected(name, payloads)`` gives a store's statement of that name, with an empty payload in place of each when they are not asked for."""


def selecting(statement: Callable[[str], str], empty: str) -> Selected:
    """How a store's statements are read when payloads may be left out; ``empty`` is the database's word for an empty one."""
    return lambda name, payloads: statement(name) if payloads else re.sub(r"\b(e\.)?data\b", empty, statement(name))


def event_shapes(selected: Selected) -> dict[tuple[bool, bool], Shape]:
    """The shapes of reading events, by whether it goes backwards and whether payloads are asked for."""
    return {
        (backwards, payloads): Shape(
            selected("read_backwards" if backwards else "read_forwards", payloads), VERSION_IN_EVENT, DATA_IN_EVENT, backwards, payloads
        )
        for backwards in (False, True)
        for payloads in (False, True)
    }


class Reader(ABC):
    """The reading half of a log in tables; arguments are those of ``EventLog``'s methods of the same names."""

    event_shapes: ClassVar[Mapping[tuple[bool, bool], Shape]]
    row_shape: ClassVar[Shape]

    def read(self, stream: str, after: int, upto: int | None, limit: int | None, backwards: bool, payloads: bool = True) -> Iterator[StoredEvent]:
        chunks = self._walk(self.event_shapes[backwards, payloads], stream, after, upto, limit)
        return islice((event for chunk in chunks for event in map(to_event, chunk)), limit)

    def rows(self, stream: str, after: int, upto: int | None) -> Iterator[Sequence[Row]]:
        return self._walk(self.row_shape, stream, after, upto, None)

    @abstractmethod
    def rows_of(self, after: Mapping[str, int], most: int | None) -> dict[str, list[Row]]: ...

    @abstractmethod
    def read_all(
        self, after: int, upto: int | None, types: Iterable[str], categories: Iterable[str], limit: int | None, payloads: bool = True
    ) -> Iterator[StoredEvent]: ...

    @abstractmethod
    def head(self, stream: str) -> int: ...

    @abstractmethod
    def last_position(self) -> int: ...

    @abstractmethod
    def streams(self, prefix: str = "") -> Iterator[str]: ...

    @abstractmethod
    def _walk(self, shape: Shape, stream: str, after: int, upto: int | None, limit: int | None) -> Iterator[list[Any]]:
        """Chunks of the rows of one stream with ``after < version <= upto``; of more than ``limit`` rows, only the first matter."""

    @abstractmethod
    def _names(self, prefix: str, last: str | None) -> list[str]:
        """The first ``NAMES_AT_ONCE`` names of streams that begin with ``prefix``, behind ``last``."""

    def _more_names(self, prefix: str, names: list[str]) -> Iterator[str]:
        """``names``, the first of those with ``prefix``, and then the others."""
        while names:
            yield from names
            names = self._names(prefix, names[-1]) if len(names) == NAMES_AT_ONCE else []
