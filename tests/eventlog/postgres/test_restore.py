"""Back-up and restore, with the tools that come with the server: logically into a younger one, and physically."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing.maker import event
from tests.cli.conftest import eventually
from tests.eventlog.postgres.shop import call, done, make_shop, run_shop, told
from tests.services.postgres import PostgresServer, binaries

BURN = "DO $$ BEGIN FOR n IN 1 .. 5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PostgresServer, str]]:
    """A server that has seen many transactions, and the URL of a log in it that is in use."""
    with PostgresServer() as server, pytest.MonkeyPatch.context() as patch:
        server.start()
        url = server.create_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(BURN)
        make_shop(tmp_path_factory.mktemp("shop"), patch)
        run_shop(url)
        yield server, url


def tool(name: str, *words: str) -> None:
    subprocess.run([str(binaries() / name), *words], check=True, capture_output=True, text=True)


def events_of(url: str) -> list[StoredEvent]:
    with closing(open_log(url, read_only=True)) as log:
        return list(log.read_all())


def views_of(url: str) -> list[Any]:
    """What stands in the views, ages left out."""
    with psycopg.connect(url) as connection:
        return [
            connection.execute(f"SELECT to_jsonb(v) - 'age' - 'horizon' - 'stream_id' FROM intentlog.{view} v ORDER BY 1".encode()).fetchall()
            for view in ("history", "runs", "waiting", "intents", "dead_letters", "lag")
        ]


def goes_on(url: str, before: list[StoredEvent]) -> None:
    """The log is what it was, new events come behind the old ones, and the agents work on."""
    assert before == events_of(url)
    done("run", "shop:app", "--until-idle", "--log", url)
    done("verify", "--app", "shop:app", "--log", url)
    assert "completed" in {each["state"] for each in told("streams", "orders-eve", "--log", url)}
    with closing(open_log(url)) as log:
        log.append("notes-new", [event()], -1)
    assert "notes-new" == events_of(url)[-1].stream
    positions = [each.position for each in events_of(url)]
    assert sorted(set(positions)) == positions
    assert before == events_of(url)[: len(before)]


def test_a_dump_restored_into_a_younger_server_goes_on_after_init(old, tmp_path):
    _, url = old
    before, seen = events_of(url), views_of(url)
    tool("pg_dump", "--format=custom", "--no-owner", "--no-acl", "--schema=intentlog", "--file", str(tmp_path / "log.dump"), url)
    with PostgresServer() as young:
        young.start()
        restored = young.create_database()
        tool("pg_restore", "--exit-on-error", "--no-owner", "--dbname", restored, str(tmp_path / "log.dump"))
        for words in (("tail",), ("send", "orders", "new", "-", '"x"'), ("streams",)):
            refused = call(*words, "--log", restored)
            assert (3, True) == (refused.exit_code, "run once, as the schema's owner: eventlog init" in refused.stderr), refused.output
        assert [True, False] == [told("init", "--log", restored)[0]["made"] for _ in range(2)]
        assert seen == views_of(restored)
        with psycopg.connect(restored) as connection:
            assert connection.execute("SELECT xid_offset > 0 FROM intentlog.meta").fetchone() == (True,)
        goes_on(restored, before)


def test_a_dump_restored_into_another_database_of_the_same_server_needs_nothing(old, tmp_path):
    server, url = old
    before = events_of(url)
    tool("pg_dump", "--format=custom", "--schema=intentlog", "--file", str(tmp_path / "log.dump"), url)
    restored = server.create_database()
    tool("pg_restore", "--exit-on-error", "--dbname", restored, str(tmp_path / "log.dump"))
    assert not told("init", "--log", restored)[0]["made"]
    goes_on(restored, before)


def test_a_physical_copy_needs_nothing(old):
    server, url = old
    before, seen = events_of(url), views_of(url)
    with PostgresServer() as copy:
        copy._run(
            str(binaries() / "pg_basebackup"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-D", str(copy.data), "-c", "fast", "--no-sync"
        )
        copy.start()
        copied = copy.url(Path(url).name)
        assert seen == views_of(copied)
        assert not told("init", "--log", copied)[0]["made"]
        goes_on(copied, before)


def test_neither_a_dump_nor_an_index_that_is_being_made_holds_a_tail_back(postgres_url):
    with closing(open_log(postgres_url)) as log, psycopg.connect(postgres_url) as dump, psycopg.connect(postgres_url, autocommit=True) as maker:
        log.append("a-1", [event()], -1)
        dump.isolation_level, dump.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        dump.execute("SELECT count(*) FROM intentlog.events")
        # It waits for the dump, whose snapshot is older.
        making = threading.Thread(target=maker.execute, args=("CREATE INDEX CONCURRENTLY mine ON intentlog.events (type)",))
        making.start()
        with psycopg.connect(postgres_url, autocommit=True) as looking:
            waits = b"SELECT 1 FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()"
            eventually(lambda: looking.execute(waits).fetchone() is not None)
        ((written,),) = log.append("b-1", [event()], -1).positions
        assert written == log.last_position()
        assert making.is_alive()
        dump.rollback()
        making.join(30)
        assert not making.is_alive()
