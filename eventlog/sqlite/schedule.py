"""Leases, fencing tokens and wake-ups: one row a (queue, name), changed by few statements however many names there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..clock import Micros
from ..log import Claim
from ..planning import SOONER
from .append import moving
from .connection import Database
from .faults import misplaced
from .ranges import is_storable
from .statements import for_rows, marks, statement

_ROWS: Final = 128
_NAMES_AT_ONCE: Final = 500


class SqliteSchedule:
    """Who needs attention, when, and who is giving it.

    Leases and hand-backs do not wait for the disk. A machine that dies takes every owner with it, so a lease that is lost,
    or a token that is given again, can meet no stale owner; wake-ups that events cause are written with the events.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Queues whose last claim got all that it asked for, so that there is probably more.
        self._plenty: set[str] = set()

    def claim_due(self, queue: str, owner: str, *, now: Micros, until: Micros, limit: int, categories: Iterable[str] = ()) -> list[Claim]:
        wanted = list(dict.fromkeys(categories))
        condition = f"AND substr(name, 1, instr(name, '-') - 1) IN ({marks(len(wanted))})" if wanted else ""
        if limit <= 0:
            return []
        look = statement("is_due").replace(":categories", condition)
        if queue not in self._plenty and not self._database.rows(look, (queue, now, now, *wanted)):
            return []
        sql = statement("claim_due").replace(":categories", condition)
        with self._database.write(durable=False) as connection:
            rows = connection.execute(sql, (owner, until, queue, queue, now, now, *wanted, limit)).fetchall()
            for wake_at, name, token in rows:
                if type(wake_at) is not int:
                    self._checked(wake_at, f"queue {queue!r:.80}, name {name!r:.200}")
                self._whole(token, queue, name)
            self._remember(queue, [(name, token) for _, name, token in rows])
        if len(rows) == limit:
            self._plenty.add(queue)
        else:
            self._plenty.discard(queue)
        return [Claim(queue, name, token, wake_at) for wake_at, name, token in sorted(rows)]

    def acquire(self, queue: str, names: Sequence[str], owner: str, *, now: Micros, until: Micros) -> dict[str, int]:
        unique = list(dict.fromkeys(names))
        tokens: dict[str, int] = {}
        if not unique:
            return tokens
        with self._database.write(durable=False) as connection:
            for begin in range(0, len(unique), _ROWS):
                part = unique[begin : begin + _ROWS]
                values = [value for name in part for value in (queue, name, owner, until, 1)]
                tokens.update(connection.execute(for_rows("acquire", 5, len(part)), (*values, now)).fetchall())
            self._remember(queue, tokens.items())
        return {name: tokens[name] for name in unique if name in tokens}

    def renew(self, claims: Sequence[Claim], *, until: Micros) -> list[Claim]:
        if not claims:
            return []
        kept: set[tuple[str, str, int]] = set()
        with self._database.write(durable=False) as connection:
            for count, values in _parts(claims):
                kept.update(connection.execute(for_rows("renew", 3, count), (*values, until)).fetchall())
        return [claim for claim in claims if claim[:3] not in kept]

    def release(self, claims: Sequence[Claim], wake_at: Micros | None = None, *, keep_wake: bool = True) -> None:
        if not claims:
            return
        with self._database.write(durable=False) as connection:
            for count, values in _parts(claims):
                if keep_wake:
                    connection.execute(for_rows("release", 3, count), values)
                else:
                    connection.execute(for_rows("release_and_set", 3, count), (*values, wake_at))
            self._database.memo.leases.clear()

    def wake(self, queue: str, name: str, at: Micros) -> None:
        with self._database.write() as connection:
            connection.execute(moving(SOONER, False, 1), (queue, name, at))

    def next_wake(self, queue: str, *, categories: Iterable[str] = ()) -> Micros | None:
        moment = self._database.rows(*_within(statement("next_wake"), (queue,), categories))[0][0]
        return self._checked(moment, f"queue {queue!r:.80}")

    def wakes(self, queue: str, names: Sequence[str]) -> dict[str, Micros | None]:
        found: dict[str, Micros | None] = {}
        wanted = [name for name in names if is_storable(name)]
        for begin in range(0, len(wanted), _NAMES_AT_ONCE):
            part = wanted[begin : begin + _NAMES_AT_ONCE]
            for name, at in self._database.rows(statement("find_wakes").replace(":names", marks(len(part))), (queue, *part)):
                found[name] = self._checked(at, f"queue {queue!r:.80}, name {name!r:.200}")
        return found

    def due(self, queue: str, *, now: Micros, categories: Iterable[str] = ()) -> int:
        return int(self._database.rows(*_within(statement("count_due"), (queue, now), categories))[0][0])

    def owners(self) -> set[str]:
        return {owner for (owner,) in self._database.rows("SELECT DISTINCT owner FROM schedule WHERE owner IS NOT NULL")}

    def evict(self, owner: str) -> int:
        with self._database.write(durable=False) as connection:
            self._database.memo.leases.clear()
            return connection.execute("UPDATE schedule SET owner = NULL, lease_until = NULL WHERE owner = ?", (owner,)).rowcount

    def _checked(self, at: Any, row: str) -> Micros | None:
        """A wake-up as it was read. Raises ``StoreSchemaError`` for what no append can have written."""
        if at is None or type(at) is int:
            return at
        raise misplaced(self._database.path, "schedule", row, "wake_at", at, "microseconds since 1970 (an integer) or NULL")

    def _whole(self, token: Any, queue: str, name: str) -> None:
        if type(token) is not int:
            raise misplaced(self._database.path, "schedule", f"queue {queue!r:.80}, name {name!r:.200}", "token", token, "an integer")

    def _remember(self, queue: str, tokens: Iterable[tuple[str, int]]) -> None:
        """A rollback forgets these again."""
        for name, token in tokens:
            self._database.memo.leases[queue, name] = token


def _within(sql: str, values: tuple[Any, ...], categories: Iterable[str]) -> tuple[str, tuple[Any, ...]]:
    """A statement over one queue, limited to names of these categories where there are any."""
    wanted = list(dict.fromkeys(categories))
    if not wanted:
        return sql, values
    numbers = ", ".join(f"?{len(values) + place}" for place in range(1, len(wanted) + 1))
    return sql.replace("queue = ?1", f"queue = ?1 AND substr(name, 1, instr(name, '-') - 1) IN ({numbers})"), (*values, *wanted)


def _parts(claims: Sequence[Claim]) -> Iterator[tuple[int, list[Any]]]:
    for begin in range(0, len(claims), _ROWS):
        part = claims[begin : begin + _ROWS]
        yield len(part), [value for claim in part for value in claim[:3]]
