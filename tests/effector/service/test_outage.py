"""The database of a replica dies under it and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.effector.service.replicas import World, eventually
from tests.services.postgres import NoPostgres, PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A PostgreSQL of this test's own, to be killed."""
    try:
        made = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with made:
        yield made.start()


def test_a_database_that_dies_in_mid_call_costs_time_and_no_certainty(server: PostgresServer, tmp_path: Path):
    """Show 3: live and not ready meanwhile; the outcome of the tool that ended in between is kept, and recorded as OK."""
    world = World(tmp_path, server.create_database())
    try:
        replica = world.start("--lease-ms", "20000", "--tool-timeout-ms", "15000")
        during, behind = world.stage("k", "gated", name="x"), world.stage("k")
        eventually(world.ledger)
        server.stop_immediately()
        world.open_gate()
        eventually(lambda: world.ledger("ended"))
        eventually(lambda: replica.get("/readyz")[0] == 503)
        parts = eventually(lambda: {name: each for name, each in replica.health()["parts"].items() if "error" in each})
        assert all("LogUnavailable" in each["error"] for each in parts.values())
        assert 200 == replica.get("/healthz")[0]
        server.start()
        eventually(lambda: world.statuses(during, behind) == ["OK", "OK"], 60)
        eventually(lambda: replica.get("/readyz")[0] == 200, 60)
        assert [during, behind] == world.ledger()
        assert 0 == replica.end()
    finally:
        world.close()


def test_a_replica_whose_database_is_gone_stops_all_the_same(server: PostgresServer, tmp_path: Path):
    world = World(tmp_path, server.create_database())
    try:
        replica = world.start("--grace-ms", "500")
        world.stage("k", "gated", name="x")
        eventually(world.ledger)
        server.stop_immediately()
        eventually(lambda: replica.get("/readyz")[0] == 503)
        assert 0 == replica.end()
        assert 1 == len(replica.lines("left to its lease"))
    finally:
        world.close()


def test_who_holds_the_log_back_is_logged_and_shown_by_health_until_it_is_over(postgres_url: str, tmp_path: Path):
    world = World(tmp_path, postgres_url)
    try:
        replica = world.start()
        assert replica.health()["held_back_by"] is None
        with psycopg.connect(postgres_url, application_name="forgotten") as holder:
            holder.execute("SELECT pg_current_xact_id()")
            world.stage("k")
            (line,) = eventually(lambda: replica.lines("log held back"))
            shown = replica.health()["held_back_by"]
            who = {"pid": holder.info.backend_pid, "user": holder.info.user, "application": "forgotten", "database": holder.info.dbname}
            for said in (line, shown):
                assert who | {"query": "SELECT pg_current_xact_id()"} == {name: said[name] for name in (*who, "query")}
                assert f"pg_terminate_backend({holder.info.backend_pid})" in said["text"]
            assert [] == replica.lines("log no longer held back")
            holder.rollback()
        (over,) = eventually(lambda: replica.lines("log no longer held back"))
        assert who["pid"] == over["pid"]
        assert replica.health()["held_back_by"] is None
        assert 0 == replica.end()
    finally:
        world.close()


def test_that_the_log_is_held_no_more_is_told_even_when_the_server_went_away_in_between(server: PostgresServer, tmp_path: Path):
    """Without the extra ``metrics``, too: the part that looks is the same."""
    url = server.create_database()
    world = World(tmp_path, url)
    try:
        # A package that cannot be imported stands where prometheus-client would be found.
        (tmp_path / "prometheus_client.py").write_text("raise ImportError('not installed')")
        replica = world.start(module="")  # the process that others are forked from has imported the real one
        assert 1 == len(eventually(lambda: replica.lines("no metrics")))
        holder = psycopg.connect(url)
        holder.execute("SELECT pg_current_xact_id()")
        world.stage("k")
        eventually(lambda: replica.lines("log held back"))
        server.stop_immediately()
        holder.close()
        eventually(lambda: replica.get("/readyz")[0] == 503)
        server.start()
        eventually(lambda: replica.lines("log no longer held back"), 60)
        assert replica.health()["held_back_by"] is None
        assert 0 == replica.end()
    finally:
        world.close()
