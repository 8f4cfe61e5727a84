"""Leases between real processes: shares that do not overlap, takeover from the dead and the paused, tokens that no crash repeats."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from intentlog.eventlog.errors import LeaseLost
from intentlog.eventlog.log import Appended, AppendRequest, Claim, EventLog, Fence, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import PATIENCE, Session, begin, ended, event, in_threads, until
from tests.services.postgres import PostgresServer

NOON = 1_700_000_000_000_000
SHARER = """
import json, sys, threading
from intentlog.eventlog.opening import open_log
url, owner = sys.argv[1:]
log, now, shares = open_log(url), 1_700_000_000_000_000, [[] for _ in range(4)]
begun = threading.Barrier(5)

def claim(number, mine):
    mine += [(found.name, found.token) for found in log.schedule.claim_due("q", f"{owner}{number}", now=now, until=now + 1_000_000, limit=5)]
    begun.wait()
    begun.wait()
    while got := log.schedule.claim_due("q", f"{owner}{number}", now=now, until=now + 1_000_000, limit=5):
        mine += [(found.name, found.token) for found in got]

threads = [threading.Thread(target=claim, args=pair) for pair in enumerate(shares)]
for thread in threads:
    thread.start()
begun.wait()
print("begun")
sys.stdin.readline()
begun.wait()
for thread in threads:
    thread.join()
print(json.dumps(shares))
log.close()
"""
OWNER = """
import sys
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import AppendRequest, Fence, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
log, now = open_log(sys.argv[1]), 1_700_000_000_000_000
(held,) = log.schedule.claim_due("q", "owner", now=now, until=now + 100, limit=1)
print(held.token)
sys.stdin.readline()
request = AppendRequest([StreamAppend(held.name, [NewEvent(id_maker()(), "turn", 1, b"late")], ANY)], [Fence("q", held.name, held.token, release=True)])
print(type(log.append_batch([request])[0]).__name__)
log.close()
"""


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def schedule(log: EventLog, *names: str) -> None:
    log.append_batch([AppendRequest([StreamAppend(name, [event()], ANY, [Wake("q", NOON)])]) for name in names])


def claim(log: EventLog, owner: str, now: int = NOON, limit: int = 10) -> list[Claim]:
    return log.schedule.claim_due("q", owner, now=now, until=now + 100, limit=limit)


def fenced(held: Claim) -> AppendRequest:
    return AppendRequest([StreamAppend(held.name, [event()], ANY)], [Fence(held.queue, held.name, held.token)])


def test_eight_threads_in_two_processes_share_a_queue_without_overlap(log: PostgresLog, url: str) -> None:
    names = [f"share-{number:03}" for number in range(400)]
    schedule(log, *names)
    processes = [begin(SHARER, url, owner) for owner in ("one", "two")]
    assert [said(each) for each in processes] == ["begun", "begun"]
    for each in processes:
        go_on(each)
    shares = [share for each in processes for share in json.loads(each.communicate(timeout=PATIENCE)[0])]
    assert sorted(name for share in shares for name, _ in share) == names
    assert len(shares) == 8 and all(share for share in shares), "everybody got some of it"


def test_a_name_that_is_locked_right_now_is_stepped_over_and_not_waited_for(log: PostgresLog, psql: Session) -> None:
    schedule(log, "a-1", "a-2", "a-3")
    with psql.transaction():
        psql.execute("SELECT 1 FROM schedule WHERE name = 'a-2' FOR UPDATE")
        assert [found.name for found in claim(log, "me")] == ["a-1", "a-3"]
    assert [found.name for found in claim(log, "me")] == ["a-2"]


def test_the_keys_of_a_killed_owner_are_taken_over_when_its_lease_is_over(log: PostgresLog, url: str) -> None:
    schedule(log, "a-1")
    owner = begin(OWNER, url)
    token = int(said(owner))
    owner.kill()
    owner.communicate(timeout=PATIENCE)
    assert claim(log, "next", NOON + 99) == []
    assert log.schedule.next_wake("q") == NOON + 100
    (taken,) = claim(log, "next", NOON + 100)
    assert taken.name == "a-1" and taken.token > token
    assert isinstance(log.append_batch([fenced(taken)])[0], Appended)


def test_an_owner_that_was_stopped_and_wakes_up_after_its_lease_commits_nothing(log: PostgresLog, url: str) -> None:
    schedule(log, "a-1")
    owner = begin(OWNER, url)
    token = int(said(owner))
    owner.send_signal(signal.SIGSTOP)
    (taken,) = claim(log, "next", NOON + 100)
    go_on(owner)
    owner.send_signal(signal.SIGCONT)
    assert owner.communicate(timeout=PATIENCE)[0].strip() == "LeaseLost"
    assert taken.token > token
    assert log.head("a-1") == 0
    assert isinstance(log.append_batch([fenced(taken)])[0], Appended)


def test_a_takeover_that_waits_for_the_owners_commit_sees_what_it_committed(log: PostgresLog, other: PostgresLog, psql: Session) -> None:
    """The append holds the row's lock until it ends, so a claim steps over it, and one by name waits for it."""
    psql.execute("""
        CREATE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
        CREATE TRIGGER gate AFTER UPDATE ON schedule FOR EACH ROW WHEN (OLD.owner = 'slow' AND NEW.owner IS NULL) EXECUTE FUNCTION wait_at_the_gate();
        SELECT pg_advisory_lock(7);
    """)
    schedule(log, "a-1")
    (held,) = claim(log, "slow")
    release = AppendRequest([StreamAppend("a-1", [event()], 0)], [Fence("q", "a-1", held.token, release=True)])
    taken: dict[str, int] = {}
    owner = in_threads(lambda: log.append_batch([release]))  # type: ignore[arg-type]
    until(lambda: _waiting(psql) == 1, "the append stands at the gate, its rows locked")
    assert claim(other, "next", NOON + 100) == []
    taker = in_threads(lambda: taken.update(other.schedule.acquire("q", ["a-1"], "next", now=NOON + 100, until=NOON + 200)))
    until(lambda: _waiting(psql) == 2, "the taker waits for the append")
    psql.execute("SELECT pg_advisory_unlock(7)")
    ended([*owner, *taker])
    assert log.head("a-1") == 1
    assert taken["a-1"] > held.token


def _waiting(psql: Session) -> int:
    (count,) = psql.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchall()
    return int(count[0])


@pytest.mark.parametrize("give", [lambda log: claim(log, "b")[0].token, lambda log: log.schedule.acquire("q", ["a-1"], "b", now=NOON, until=NOON + 9)["a-1"]])
def test_a_token_that_a_crash_of_the_server_forgot_is_never_given_again(give: Callable[[EventLog], int]) -> None:
    with PostgresServer() as server:
        server.start(fsync=True)
        database = server.create_database()
        with psycopg.connect(database, autocommit=True) as psql:
            psql.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            psql.execute("SELECT pg_reload_conf()")
        with closing(open_log(f"{database}?schema=readings")) as log:
            schedule(log, "a-1")
            (forgotten,) = claim(log, "a")
            server.stop_immediately()
            server.start(fsync=True)
            until(lambda: _answers(log), "the server is there again")
            assert log.schedule.owners() == set(), "the crash forgot the lease, or this test shows nothing"
            assert give(log) > forgotten.token
            assert isinstance(log.append_batch([fenced(forgotten)])[0], LeaseLost)


def _answers(log: EventLog) -> bool:
    try:
        return log.last_position() >= 0
    except Exception:
        time.sleep(0.05)
        return False


def test_owners_that_release_renew_and_claim_the_same_names_in_every_order_never_wait_in_a_circle(log: PostgresLog, other: PostgresLog) -> None:
    names = [f"a-{number}" for number in range(40)]
    schedule(log, *names)

    def work(mine: EventLog, owner: str, backwards: bool) -> None:
        for turn in range(25):
            got = claim(mine, owner, NOON + turn, limit=40) or [
                Claim("q", name, token, None)
                for name, token in mine.schedule.acquire("q", names[:: -1 if backwards else 1], owner, now=NOON + turn, until=NOON + turn + 100).items()
            ]
            ordered = sorted(got, reverse=backwards)
            mine.schedule.renew(ordered, until=NOON + 500)
            mine.schedule.release(ordered)

    ended(in_threads(*[lambda log=each, owner=f"o{number}", way=bool(number % 2): work(log, owner, way) for number, each in enumerate((log, other) * 3)]))
    assert log.schedule.owners() == set()
