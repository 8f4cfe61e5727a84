"""Leases, fencing tokens and wake-ups: one row a (queue, name), changed by one statement however many names there are.

Claims share the work without anybody knowing of anybody: ``FOR UPDATE SKIP LOCKED`` steps over what another process is
claiming at this moment. Every statement that locks several rows does so in the order of (queue, name), and so does the
append, so none of them can wait for each other in a circle.

Leases and hand-backs do not wait for the disk, so a server that crashes may forget the last of them, while the owners,
which are other machines, live on. A token that such an owner holds must never be given to somebody else. So it is never
below the moment of the server's clock at which it is given, in microseconds: after a crash all of them are larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..clock import Micros
from ..log import Claim
from .arrays import Integers, Texts, integers, texts
from .connection import Database
from .statements import statement
from .texts import is_storable

_NAMES_AT_ONCE: Final = 500


class PostgresSchedule:
    """Who needs attention, when, and who is giving it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_due(self, queue: str, owner: str, *, now: Micros, until: Micros, limit: int, categories: Iterable[str] = ()) -> list[Claim]:
        if limit <= 0:
            return []
        sql, values = _within("claim_due", (queue, now, limit, owner, until), categories)
        rows = self._database.rows(sql, values, durable=False)
        return [Claim(queue, name, token, wake_at) for wake_at, name, token in sorted(rows)]

    def acquire(self, queue: str, names: Sequence[str], owner: str, *, now: Micros, until: Micros) -> dict[str, int]:
        unique = list(dict.fromkeys(names))
        tokens: dict[str, int] = {}
        for begin in range(0, len(unique), _NAMES_AT_ONCE):
            part = texts(unique[begin : begin + _NAMES_AT_ONCE])
            tokens.update(self._database.rows(statement("acquire"), (queue, owner, until, part, now), durable=False))
        return {name: tokens[name] for name in unique if name in tokens}

    def renew(self, claims: Sequence[Claim], *, until: Micros) -> list[Claim]:
        kept: set[Any] = set()
        for queue, names, tokens in _lists(claims):
            rows = self._database.rows(statement("renew"), (queue, names, tokens, until), durable=False)
            kept.update((queue, name, token) for name, token in rows)
        return [claim for claim in claims if claim[:3] not in kept]

    def release(self, claims: Sequence[Claim], wake_at: Micros | None = None, *, keep_wake: bool = True) -> None:
        sql = statement("release").replace(":wake", "" if keep_wake else ", wake_at = $4::bigint")
        for lists in _lists(claims):
            self._database.execute(sql, lists if keep_wake else (*lists, wake_at), durable=False)

    def wake(self, queue: str, name: str, at: Micros) -> None:
        self._database.execute(statement("wake_sooner"), (queue, name, at))

    def next_wake(self, queue: str, *, categories: Iterable[str] = ()) -> Micros | None:
        moment: Micros | None = self._database.rows(*_within("next_wake", (queue,), categories))[0][0]
        return moment

    def wakes(self, queue: str, names: Sequence[str]) -> dict[str, Micros | None]:
        found: dict[str, Micros | None] = {}
        wanted = [name for name in names if is_storable(name)]
        for begin in range(0, len(wanted), _NAMES_AT_ONCE):
            found.update(self._database.rows(statement("find_wakes"), (queue, texts(wanted[begin : begin + _NAMES_AT_ONCE]))))
        return found

    def due(self, queue: str, *, now: Micros, categories: Iterable[str] = ()) -> int:
        return int(self._database.rows(*_within("count_due", (queue, now), categories))[0][0])

    def owners(self) -> set[str]:
        return {owner for (owner,) in self._database.rows("SELECT DISTINCT owner FROM schedule WHERE owner IS NOT NULL")}

    def evict(self, owner: str) -> int:
        return self._database.execute(statement("evict"), (owner,), durable=False)


def _within(name: str, values: tuple[Any, ...], categories: Iterable[str]) -> tuple[str, tuple[Any, ...]]:
    """A statement over one queue, limited to names of these categories where there are any."""
    wanted = list(dict.fromkeys(categories))
    if not wanted:
        return statement(name).replace(":categories", ""), values
    condition = f"AND split_part(name, '-', 1) = ANY(${len(values) + 1})"
    return statement(name).replace(":categories", condition), (*values, texts(name for name in wanted if is_storable(name)))


def _lists(claims: Sequence[Claim]) -> Iterator[tuple[str, Texts, Integers]]:
    """Claims as (queue, names, tokens): of one queue each, not too long, and no name twice in one of them."""
    open_lists: dict[str, list[dict[str, int]]] = {}
    for claim in claims:
        lists = open_lists.setdefault(claim.queue, [])
        fitting = next((each for each in lists if claim.name not in each and len(each) < _NAMES_AT_ONCE), None)
        if fitting is None:
            lists.append(fitting := {})
        fitting[claim.name] = claim.token
    for queue, lists in open_lists.items():
        for tokens in lists:
            yield queue, texts(tokens), integers(list(tokens.values()))
