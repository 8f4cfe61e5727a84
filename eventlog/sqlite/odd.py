"""What a hand put into the tables of a file and no append writes. SQLite takes a value of any type for any column.

Nobody pays for it while reading: this is asked by ``verify``, and once something has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from ..odd import KINDS, OddCell
from ..odd import odd_cells as of_event
from ..reading import to_event
from .faults import misplaced
from .statements import statement

_BEFORE_ALL: Final = -(1 << 63)
#: Events that one statement looks at, so that none runs for long or holds a snapshot.
_WINDOW: Final = 50_000
_AFFINITIES: Final[dict[type, str]] = {int: "integer", str: "text", bytes: "blob"}


@attrs.frozen
class Table:
    """A table, and what belongs into its columns."""

    name: str
    #: What tells its rows apart, for a person.
    key: tuple[str, ...]
    columns: dict[str, type]
    #: Those of the columns that may be NULL.
    optional: frozenset[str] = frozenset()

    @property
    def condition(self) -> str:
        """SQL: whether a row may be odd. Text beyond ASCII is looked at here, for SQL cannot say whether it is text."""
        return " OR ".join(self._condition(column, kind) for column, kind in self.columns.items())

    def _condition(self, column: str, kind: type) -> str:
        odd = f"typeof({column}) <> '{_AFFINITIES[kind]}'"
        if column in self.optional:
            odd = f"typeof({column}) NOT IN ('{_AFFINITIES[kind]}', 'null')"
        return f"{odd} OR {column} GLOB '*[^ -~]*'" if kind is str else odd


TABLES: Final = (
    Table("streams", ("id", "name"), {"name": str, "category": str}),
    Table(
        "schedule",
        ("queue", "name"),
        {"queue": str, "name": str, "wake_at": int, "owner": str, "lease_until": int, "token": int},
        frozenset({"wake_at", "owner", "lease_until"}),
    ),
    Table("snapshots", ("stream",), {"stream": str, "version": int, "fingerprint": str, "data": bytes}),
    Table("checkpoints", ("name",), {"name": str, "position": int}),
    Table("views", ("name",), {"name": str, "revision": int, "cleared": int}),
    Table("view_rows", ("view", "key"), {"view": str, "key": str, "value": bytes}),
    Table("parked", ("projection", "position"), {"projection": str, "position": int, "stream": str, "version": int, "error": str, "parked_at": int}),
    Table("pointed", ("name",), {"name": str, "view": str}),
)
"""All but that of the events, which are looked at one by one."""

Ask = Callable[[str, Sequence[Any]], Sequence[Any]]


def odd_cells(ask: Ask, path: Path, *, events: bool) -> Iterator[OddCell]:
    """Cells that hold what no append writes; those of events, when they are asked for, last. ``ask`` runs a reading statement."""
    for table in TABLES:
        yield from _of_table(ask, path, table)
    if events:
        yield from _of_events(ask, path)


def _of_table(ask: Ask, path: Path, table: Table) -> Iterator[OddCell]:
    names = [*table.columns]
    for row in ask(f"SELECT {', '.join((*table.key, *names))} FROM {table.name} WHERE {table.condition}", ()):
        key, values = row[: len(table.key)], row[len(table.key) :]
        place = ", ".join(f"{column} {value!r:.200}" for column, value in zip(table.key, key, strict=True))
        for column, value in zip(names, values, strict=True):
            kind = table.columns[column]
            if type(value) is not kind and not (value is None and column in table.optional):
                text = str(misplaced(path, table.name, place, column, value, KINDS[kind]))
                yield OddCell(table.name, place, column, text)


def _of_events(ask: Ask, path: Path) -> Iterator[OddCell]:
    end_of_window, find_odd = statement("end_of_window"), statement("find_odd")
    after = _BEFORE_ALL
    while (end := ask(end_of_window, (after, _WINDOW))[0][0]) is not None:
        for row in ask(find_odd, (after, end)):
            stored = to_event(row)
            if type(stored.stream) is not str:
                stored = stored._replace(stream=f"({stored.stream!r})")
            yield from of_event(stored, f"{path} was edited by hand: table events, ", "Put the right value back, or restore the file from a backup.")
        after = end
