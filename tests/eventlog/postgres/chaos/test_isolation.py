"""Every statement of a log reads what is committed at its beginning, whatever the database, the role or the URL would rather have.

The order of the log rests on it: an append must see what was committed while it waited for its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from intentlog.eventlog.log import Appended
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.testing.maker import Ticking, event, request, together
from intentlog.eventlog.versions import ANY

LEVELS = ("repeatable read", "serializable")
#: Refuses every write of a transaction that would not see what others commit beside it.
GUARD = """
    CREATE FUNCTION sees_what_is_committed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('transaction_isolation') <> 'read committed' THEN
            RAISE 'a write to % under %', TG_TABLE_NAME, current_setting('transaction_isolation');
        END IF;
        RETURN NULL;
    END $$
"""
WRITTEN = ("streams", "events", "schedule", "snapshots", "checkpoints", "views", "view_rows", "blobs")


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def by_database(url: str, level: str) -> str:
    run(url, f"ALTER DATABASE \"{urlsplit(url).path[1:]}\" SET default_transaction_isolation = '{level}'")
    return url


def by_role(url: str, level: str) -> str:
    role = f"strict_{urlsplit(url).path[-8:]}"
    run(url, f"CREATE ROLE {role} LOGIN SUPERUSER", f"ALTER ROLE {role} SET default_transaction_isolation = '{level}'")
    return url.replace("//postgres@", f"//{role}@")


def by_url(url: str, level: str) -> str:
    return f"{url}?options=" + quote("-c default_transaction_isolation=" + level.replace(" ", "\\ "))


@pytest.fixture(params=[by_database, by_role, by_url])
def strict(request, postgres_url) -> Iterator[str]:
    """An address at which a plain session would be serializable, and whose tables refuse such a session's writes."""
    open_log(postgres_url).close()
    run(postgres_url, "SET search_path = intentlog", GUARD)
    for table in WRITTEN:
        run(postgres_url, f"CREATE TRIGGER guard AFTER INSERT OR UPDATE ON intentlog.{table} EXECUTE FUNCTION intentlog.sees_what_is_committed()")
    yield request.param(postgres_url, "serializable")
    role = f"strict_{urlsplit(postgres_url).path[-8:]}"
    run(postgres_url, f"DROP ROLE IF EXISTS {role}")


def test_the_guard_refuses_a_plain_session_there(strict):
    plain = psycopg.connect(strict, autocommit=True)
    with closing(plain), pytest.raises(psycopg.errors.RaiseException, match="under serializable"):
        plain.execute("INSERT INTO intentlog.checkpoints VALUES (1, 'x')")


def test_every_write_reads_what_is_committed(strict):
    with closing(open_log(strict, clock=Ticking())) as log:
        now = log.clock()
        log.append("a-1", [event()], -1)
        log.append("a-1", [event(bytes(100_000))], ANY)
        same = event()
        assert isinstance(log.append_batch([request("a-1", same, expected=7), request("b-1", same)])[1], Appended), "looked at closely"
        log.append_batch([request("large-1", *[event(bytes(60_000)) for _ in range(80)], expected=-1)])
        log.schedule.wake("q", "a-1", now)
        (claim,) = log.schedule.claim_due("q", "me", now=now, until=now + 1_000, limit=1)
        log.schedule.renew([claim], until=now + 2_000)
        log.schedule.release([claim])
        log.checkpoints.save("x", 1)
        with log.views.transaction("sums") as view:
            view.put("k", b"v")
            view.checkpoint(1)
        assert (1, b"v") == (log.checkpoints.load("sums"), log.views.read("sums").get("k"))


@pytest.mark.parametrize("level", LEVELS)
def test_writers_of_one_stream_queue_up_instead_of_failing(postgres_url, level):
    """Under a stricter level each of them would see the stream as it was before it began to wait, and lose the race."""
    by_database(postgres_url, level)
    with closing(open_log(postgres_url)) as log:
        assert isinstance(log, PostgresLog)
        closely: list[object] = []
        look_closely = log._appender._closely

        def counted(requests):
            closely.append(requests)
            return look_closely(requests)

        setattr(log._appender, "_closely", counted)  # noqa: B010 - the checker forbids to assign a method
        log.append("a-1", [event()], -1)
        together(*[lambda: [log.append("a-1", [event()], ANY) for _ in range(20)] for _ in range(8)])
        found = list(log.read_all())
        assert list(range(161)) == [each.version for each in found]
        assert [] == closely
