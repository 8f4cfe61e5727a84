"""The tests' own PostgreSQL: durable or not as asked, whole after a crash, of nobody's account but an unprivileged one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.services.postgres import NoPostgres, PostgresServer, binaries


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as made:
        yield made


@pytest.fixture
def running(server) -> Iterator[PostgresServer]:
    """A server that runs when the test begins, and not when it has ended."""
    yield server.start()
    if server.pid is not None:
        server.stop()


def numbers(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [number for (number,) in connection.execute("SELECT number FROM kept ORDER BY number")]


def keep(url: str, *given: int) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (number int)")
        for number in given:
            connection.execute("INSERT INTO kept VALUES (%s)", [number])


def flushed(url: str) -> tuple[int, int]:
    """How often the write-ahead log was written, and synced to the disk, since the server began; counts arrive with a delay."""
    with psycopg.connect(url, autocommit=True) as connection:
        asks = "SELECT wal_write, wal_sync FROM pg_stat_wal"
        if connection.info.server_version >= 180000:
            asks = "SELECT sum(writes)::int, sum(fsyncs)::int FROM pg_stat_io WHERE object = 'wal'"
        row = connection.execute(asks.encode()).fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.mark.parametrize("fsync", [True, False])
def test_a_commit_reaches_the_disk_if_and_only_if_that_was_asked_for(server, fsync):
    server.start(fsync)
    url = server.create_database()
    before = flushed(url)
    for number in range(20):
        keep(url, number)
    until = time.monotonic() + 20
    while flushed(url)[0] < before[0] + 20 and time.monotonic() < until:
        time.sleep(0.05)
    written, synced = (now - then for now, then in zip(flushed(url), before, strict=True))
    server.stop()
    assert (True, fsync) == (written >= 20, synced >= 20), f"{written} writes, {synced} syncs"


def test_a_restart_keeps_the_data_and_the_address(running):
    url = running.create_database()
    keep(url, 1, 2)
    before = len(running.log)
    running.restart()
    assert [1, 2] == numbers(url)
    assert "not properly shut down" not in running.log[before:]


def test_an_immediate_stop_is_a_crash_after_which_what_was_committed_is_there_and_nothing_else(running):
    url = running.create_database()
    keep(url, 1, 2)
    with psycopg.connect(url) as cut:
        cut.execute("INSERT INTO kept VALUES (3)")
        running.stop_immediately()
        with pytest.raises(psycopg.OperationalError):
            cut.commit()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)
    before = len(running.log)
    running.start()
    assert [1, 2] == numbers(url)
    assert "not properly shut down; automatic recovery in progress" in running.log[before:]


def test_it_never_runs_as_root(running):
    owner = (running.data / "postmaster.pid").stat().st_uid
    assert 0 != owner
    assert os.geteuid() in (0, owner)


def test_it_serves_many_connections_at_once(running):
    url = running.create_database()
    held = [psycopg.connect(url) for _ in range(150)]
    for connection in held:
        connection.close()


def test_a_dropped_database_is_gone_though_somebody_still_uses_it(running):
    url = running.create_database()
    with psycopg.connect(url) as user:
        running.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            user.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_a_server_that_cannot_start_says_why(server):
    server.start()
    server.stop()
    (server.data / "postgresql.conf").rename(server.folder / "away")
    try:
        with pytest.raises(RuntimeError, match=r"did not start.*\n(.*\n)*.*postgresql\.conf"):
            server.start()
    finally:
        (server.folder / "away").rename(server.data / "postgresql.conf")


def test_nothing_is_left_of_a_server_that_was_closed():
    with PostgresServer() as server:
        url = server.start().create_database()
        assert server.folder.is_dir()
    assert not server.folder.exists()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        psycopg.connect(url)


def test_every_test_gets_an_empty_database_of_its_own(postgres_server, postgres_url):
    other = postgres_server.create_database()
    keep(other, 1)
    with psycopg.connect(postgres_url) as connection:
        assert (None,) == connection.execute("SELECT to_regclass('kept')").fetchone()
    postgres_server.drop_database(other)
    assert urlsplit(other).netloc == urlsplit(postgres_url).netloc


def installed(folder: Path, version: str, *names: str) -> Path:
    (folder / version / "bin").mkdir(parents=True)
    for name in names:
        (folder / version / "bin" / name).touch(mode=0o755)
    return folder / version / "bin"


def test_of_several_servers_the_newest_whole_one_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    installed(tmp_path, "9.6", "postgres", "initdb")
    newest = installed(tmp_path, "15", "postgres", "initdb")
    installed(tmp_path, "17", "psql")
    assert newest == binaries(tmp_path)


def test_where_no_server_is_installed_the_error_names_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoPostgres, match=r"run \.ci/services as root .* or set EVENTLOG_TEST_POSTGRES_URL"):
        binaries(tmp_path)
