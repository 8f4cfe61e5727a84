"""What the server does for a statement must not grow with what the statement is not about, whatever the planner believes of a young table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import AppendRequest, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.arrays import integers, register, texts
from intentlog.eventlog.postgres.pooling import settings
from intentlog.eventlog.postgres.statements import statement
from intentlog.eventlog.versions import ANY

NOON = 1_700_000_000_000_000
NAMES = 2_000
FEW = 20
new_id = id_maker()


@pytest.fixture
def log(postgres_url: str) -> Iterator[PostgresLog]:
    with closing(open_log(f"{postgres_url}?pool_size=1")) as opened:
        assert isinstance(opened, PostgresLog)
        yield opened


def rows_looked_at(plan: dict[str, Any]) -> int:
    """Rows that the scans of a plan fetched, those that they threw away again among them."""
    kept = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) if "Relation Name" in plan and plan["Node Type"] != "ModifyTable" else 0
    return int(kept * plan["Actual Loops"]) + sum(map(rows_looked_at, plan.get("Plans", ())))


LEASES: dict[str, Callable[[Sequence[str], Sequence[int]], tuple[Any, ...]]] = {
    "claim_due": lambda names, tokens: ("q", NOON, FEW, "me", NOON + 1),
    "renew": lambda names, tokens: ("q", texts(names), integers(tokens), NOON + 2),
    "release": lambda names, tokens: ("q", texts(names), integers(tokens)),
    "acquire": lambda names, tokens: ("q", "me", NOON + 1, texts(names), NOON + 5),
    "find_wakes": lambda names, tokens: ("q", texts(names)),
}


@pytest.mark.parametrize("name", LEASES)
@pytest.mark.parametrize("counted", [False, True], ids=["not-counted-yet", "counted"])
def test_leases_look_at_their_own_rows_and_at_no_others(log: PostgresLog, postgres_url: str, name: str, counted: bool) -> None:
    with psycopg.connect(**settings(parse_address(postgres_url), read_only=False, durable=False)) as session:
        register(session)
        session.execute("ALTER TABLE schedule SET (autovacuum_enabled = off)")
        session.commit()
        log.append_batch([AppendRequest((StreamAppend(f"keys-{each}", (), ANY, (Wake("q", NOON),)),)) for each in range(NAMES)])
        held = log.schedule.claim_due("q", "me", now=NOON, until=NOON + 1, limit=FEW)
        assert FEW == len(held)
        if counted:
            session.execute("ANALYZE schedule")
        names, tokens = zip(*[(claim.name, claim.token) for claim in sorted(held, key=lambda claim: claim.name)], strict=True)
        sql = statement(name).replace(":categories", "").replace(":wake", "")
        ((found,),) = session.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}".encode(), LEASES[name](names, tokens)).fetchall()
        # Claimed rows stand before those that are due still; each row is found twice, to be locked and to be changed.
        assert rows_looked_at(found[0]["Plan"]) <= 4 * FEW, found


def test_a_statement_is_planned_once_and_not_for_every_list_it_is_given(log: PostgresLog) -> None:
    """The planner takes a list that it does not see for a long one, and would plan for the one at hand each time: longer than an append takes."""
    for number in range(12):
        log.append("many-1", [NewEvent(new_id(), "thing.happened", 1, b"{}") for _ in range(1 + number % 3)], ANY)
        log.schedule.claim_due("q", "me", now=NOON, until=NOON + 1, limit=FEW)
    planned = "SELECT generic_plans, custom_plans FROM pg_prepared_statements"
    found = [row for durable in (True, False) for row in log._database.rows(planned, durable=durable)]
    assert sum(generic for generic, _ in found) >= 12 and 0 == sum(custom for _, custom in found), found
