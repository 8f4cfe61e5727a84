"""What the views of all stores have in common: refusing to write where only reading is meant, and the changes of one block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Any, Protocol

from .errors import LeaseLost
from .log import ParkedEvent


class ForReading:
    """A view that is open for reading only."""

    def __init__(self, name: str) -> None:
        self._name = name

    def put(self, key: str, value: bytes) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be written. Write inside views.transaction({self._name!r}).")

    def delete(self, key: str) -> None:
        raise TypeError(f"View {self._name!r} is open for reading, so {key!r:.80} cannot be deleted. Write inside views.transaction({self._name!r}).")


class Tables(Protocol):
    """The database that views stand in."""

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Every row of one reading statement."""
        ...


class Meant(ForReading):
    """The view in tables that a name means, for reading only.

    ``chunks`` gives the committed rows of a view that begin with a prefix, in key order, some at once.
    """

    def __init__(
        self,
        name: str,
        tables: Tables,
        statement: Callable[[str], str],
        is_storable: Callable[[str], bool],
        chunks: Callable[[str, str], Iterable[list[tuple[str, bytes]]]],
    ) -> None:
        super().__init__(name)
        self._tables, self._statement, self._is_storable, self._chunks = tables, statement, is_storable, chunks

    def get(self, key: str) -> bytes | None:
        if not self._is_storable(key):
            return None
        found = self._tables.rows(self._statement("find_meant_row"), (self._name, key))
        return found[0][0] if found else None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        meant, cleared = self._tables.rows(self._statement("find_meant"), (self._name,))[0]
        for rows in self._chunks(meant, prefix):
            # Asked for behind the rows: when it is as it was, they were there, too.
            if self._tables.rows(self._statement("find_cleared"), (meant,)) != [(cleared,)]:
                raise LeaseLost(f"View {meant!r} was cleared during a walk through it, so the walk would not be whole. Begin it again.")
            yield from rows


class Overlay:
    """The changes of one block, over what is committed: nothing of them is visible outside before the commit.

    ``get`` and ``items`` are asked for what is committed; ``is_storable`` says which keys the store can hold (``None``: any),
    and ``unstorable`` what those have that it cannot.
    """

    def __init__(
        self,
        position: int,
        get: Callable[[str], bytes | None],
        items: Callable[[str], Iterable[tuple[str, bytes]]],
        is_storable: Callable[[str], bool] | None = None,
        unstorable: str = "",
    ) -> None:
        self.position = position
        self.changes: dict[str, bytes | None] = {}
        #: By position; None: no longer.
        self.parked: dict[int, ParkedEvent | None] = {}
        self._get, self._items = get, items
        self._is_storable, self._unstorable = is_storable, unstorable

    def get(self, key: str) -> bytes | None:
        return self.changes[key] if key in self.changes else self._get(key)

    def put(self, key: str, value: bytes) -> None:
        if not isinstance(value, bytes):
            raise TypeError(f"The value of {key!r:.80} must be bytes, not {type(value).__name__}: {value!r:.80}")
        if self._is_storable is not None and not self._is_storable(key):
            raise ValueError(f"The key {key!r:.80} holds {self._unstorable}. Encode it in some other way.")
        self.changes[key] = value

    def delete(self, key: str) -> None:
        self.changes[key] = None

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        changes = self.changes.copy()  # the block may go on writing while it walks
        mine = sorted((key, value) for key, value in changes.items() if value is not None and key.startswith(prefix))
        theirs = (row for row in self._items(prefix) if row[0] not in changes)
        return merge(mine, theirs, key=itemgetter(0))

    def checkpoint(self, position: int) -> None:
        self.position = max(self.position, position)

    def park(self, event: ParkedEvent) -> None:
        self.parked[event.position] = event

    def unpark(self, position: int) -> None:
        self.parked[position] = None
