"""Leases over more names than one statement takes, and by way of the right index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.log import Claim, EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite.statements import statement

QUEUE = "turns"
NAMES = [f"a-{each:04d}" for each in range(400)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as opened:
        yield opened


def test_hundreds_of_names_are_acquired_renewed_and_released(log: EventLog) -> None:
    tokens = log.schedule.acquire(QUEUE, NAMES, "one", now=0, until=10)
    assert tokens == dict.fromkeys(NAMES, 1)
    claims = [Claim(QUEUE, name, token, None) for name, token in tokens.items()]
    stale = Claim(QUEUE, NAMES[7], 99, None)
    assert log.schedule.renew([*claims, stale], until=20) == [stale]
    assert log.schedule.acquire(QUEUE, NAMES, "two", now=15, until=30) == {}
    log.schedule.release([*claims, stale], 50, keep_wake=False)
    assert log.schedule.owners() == set()
    assert log.schedule.next_wake(QUEUE) == 50
    assert [claim.token for claim in log.schedule.claim_due(QUEUE, "two", now=50, until=60, limit=1_000)] == [2] * 400


def test_a_lease_that_was_handed_back_cannot_be_renewed(log: EventLog) -> None:
    claim = Claim(QUEUE, "a-1", log.schedule.acquire(QUEUE, ["a-1"], "one", now=0, until=10)["a-1"], None)
    log.schedule.release([claim])
    assert log.schedule.renew([claim], until=20) == [claim]
    assert log.schedule.due(QUEUE, now=0) == 0


def test_a_claim_that_got_all_it_asked_for_is_followed_by_one_that_does_not_look_first(tmp_path: Path) -> None:
    with (
        closing(open_log(f"sqlite:///{tmp_path}/log.db?busy_timeout_ms=1")) as log,
        closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as other,
    ):
        for name in NAMES[:2]:
            log.schedule.wake(QUEUE, name, 1)

        def claim() -> list[str]:
            return [each.name for each in log.schedule.claim_due(QUEUE, "w", now=1, until=2, limit=2)]

        assert claim() == NAMES[:2]
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable, match="locked"):
            claim()
        other.execute("ROLLBACK")
        assert claim() == []
        other.execute("BEGIN IMMEDIATE")
        assert claim() == [], "nothing was left, so it looks before it asks for the write lock"
        other.execute("ROLLBACK")


def test_a_category_with_a_dot_is_not_taken_for_another(log: EventLog) -> None:
    for name in ("a-1", "a.b-1", "ab-1", "a-a.b-1"):
        log.schedule.wake(QUEUE, name, 1)
    claims = log.schedule.claim_due(QUEUE, "w", now=1, until=2, limit=10, categories=["a", "none"])
    assert [claim.name for claim in claims] == ["a-1", "a-a.b-1"]


@pytest.mark.parametrize(
    ("name", "parameters", "indexes"),
    [
        ("is_due", (QUEUE, 1, 1), ["schedule_by_wake"]),
        ("claim_due", ("w", 1, QUEUE, QUEUE, 1, 1, 1), ["PRIMARY KEY (queue=? AND name=?)", "schedule_by_wake"]),
        ("next_wake", (QUEUE,), ["schedule_by_wake", "schedule_by_owner"]),
        ("count_due", (QUEUE, 1), ["schedule_by_wake", "schedule_by_owner"]),
    ],
)
def test_questions_about_the_schedule_are_answered_from_an_index(log: EventLog, name: str, parameters: tuple[object, ...], indexes: list[str]) -> None:
    sql = statement(name).replace(":categories", "")
    with log._database.write() as connection:  # type: ignore[attr-defined]
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    touching = [step for step in plan if " schedule" in step]
    assert len(touching) == len(indexes), plan
    assert [step for step, index in zip(touching, indexes, strict=True) if index not in step] == []
