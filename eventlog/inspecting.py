"""What a store can say of its tables that no reader sees: rows in the way of nobody, and indexes that are gone.

A log in memory and a bundle are read into place event by event, so there is nothing behind what they show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import attrs

from .events import StoredEvent
from .log import EventLog
from .odd import OddCell
from .reading import to_event


@attrs.frozen
class Index:
    """An index that the log needs."""

    name: str
    table: str
    columns: tuple[str, ...]
    #: What it keeps true, or what is slow without it, in words.
    purpose: str
    unique: bool = True
    primary: bool = False
    #: Condition on the rows that are in it; empty: all are.
    where: str = ""


@runtime_checkable
class Inspectable(Protocol):
    """A log in tables that a hand can reach."""

    def unseen(self) -> Iterator[StoredEvent]:
        """Rows that are no event of any stream for those who read streams, in order of position.

        Their version is below 0 or no number, or their stream has no name: ``stream`` is then the id, as text, in brackets.
        """
        ...

    def missing_indexes(self) -> list[Index]:
        """Those of the log's indexes that are not there as the release makes them."""
        ...

    def odd_cells(self, *, events: bool = True) -> Iterator[OddCell]:
        """Cells that hold what no append writes: those of ``events`` last, in order of position, where they are asked for."""
        ...


@runtime_checkable
class TellsOdd(Protocol):
    """A log whose cells a hand can have reached; a bundle too, which has the columns but no tables."""

    def odd_cells(self, *, events: bool = True) -> Iterator[OddCell]:
        """See ``Inspectable``."""
        ...


def unseen_in(log: EventLog) -> Iterator[StoredEvent]:
    """What ``unseen`` of ``log`` gives; nothing where there is nothing behind what is shown."""
    return log.unseen() if isinstance(log, Inspectable) else iter(())


def missing_indexes_of(log: EventLog) -> list[Index]:
    """What ``missing_indexes`` of ``log`` gives; none where there are no tables."""
    return log.missing_indexes() if isinstance(log, Inspectable) else []


def odd_cells_of(log: EventLog, *, events: bool = True) -> Iterator[OddCell]:
    """What ``odd_cells`` of ``log`` gives; nothing of a log that no hand can reach."""
    return log.odd_cells(events=events) if isinstance(log, TellsOdd) else iter(())


def in_the_way(index: Index, rows: Iterable[str]) -> str:
    """What to say when ``index`` cannot be made because of ``rows``, each in words; ends what began with the log's name."""
    return (
        f"lacks its index {index.name}, which keeps {index.purpose}, and it cannot be made anew, because rows of {index.table} stand in the way: "
        f"{'; '.join(rows)}. Take out those that a hand put in, or restore the log from a backup; then run once more: eventlog init"
    )


_BEFORE_ALL: Final = -(1 << 63)
#: Events that one statement looks at, so that none runs for long or holds a snapshot.
_WINDOW: Final = 50_000


class Inspector:
    """The part of a log in tables that asks behind its readers."""

    def __init__(
        self,
        ask: Callable[[str, Sequence[Any]], Sequence[Any]],
        statement: Callable[[str], str],
        missing: Callable[[], list[Index]],
        odd: Callable[[bool], Iterator[OddCell]] = lambda events: iter(()),
    ) -> None:
        #: Runs a statement of the store; its rows.
        self._ask = ask
        #: The text of a statement, by its name.
        self._statement = statement
        self._missing = missing
        #: Odd cells, with those of events or without; a database that keeps types has none.
        self._odd = odd

    def unseen(self) -> Iterator[StoredEvent]:
        """See ``Inspectable.unseen``; window by window."""
        return (stored if type(stored.stream) is str else stored._replace(stream=f"({stored.stream!r})") for stored in map(to_event, self._windows()))

    def missing_indexes(self) -> list[Index]:
        """See ``Inspectable.missing_indexes``."""
        return self._missing()

    def odd_cells(self, *, events: bool = True) -> Iterator[OddCell]:
        """See ``Inspectable.odd_cells``."""
        return self._odd(events)

    def _windows(self) -> Iterator[Sequence[Any]]:
        end_of_window, find_unseen = self._statement("end_of_window"), self._statement("find_unseen")
        after = _BEFORE_ALL
        while (end := self._ask(end_of_window, (after, _WINDOW))[0][0]) is not None:
            yield from self._ask(find_unseen, (after, end))
            after = end
