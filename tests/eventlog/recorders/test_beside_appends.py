"""PostgreSQL, where transactions commit in another order than they began: no follower misses anything, and no append waits for a recorder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from eventsourcing.persistence import Notification, StoredEvent, Tracking
from eventsourcing.system import ProcessApplication, SingleThreadedRunner, System

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.recorders import Layout, LogApplicationRecorder, LogProcessRecorder, recording
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import HELD, PATIENCE, Session, ended, held_append, hold_back, in_threads, new_id, until
from tests.eventlog.recorders.bank import Account, Bank

TEXT = Layout("account", "text")
LATE = "late.commit"


def stored(key: str, version: int, topic: str = "t") -> StoredEvent:
    return StoredEvent(key, version, topic, b"s")


def append(log: EventLog, key: str, versions: range, topic: str = "t") -> None:
    """What an agent, or any other program, does in the same category without a recorder."""
    log.append(TEXT.checked_stream(key), [TEXT.new_event(stored(key, version, topic), 1, new_id()) for version in versions], ANY)


@pytest.fixture
def url(postgres_url) -> str:
    return f"{postgres_url}?schema=bank"


@pytest.fixture
def log(url) -> Iterator[EventLog]:
    with closing(open_log(url)) as opened:
        yield opened


@pytest.fixture
def other(url, log) -> Iterator[EventLog]:
    """The same log as another process has it."""
    with closing(open_log(url)) as opened:
        yield opened


@pytest.fixture
def recorder(log) -> LogApplicationRecorder:
    return LogApplicationRecorder(log, TEXT)


@pytest.fixture
def psql(postgres_url, log) -> Iterator[Session]:
    with psycopg.connect(postgres_url, autocommit=True, options="-c search_path=bank") as session:
        yield session


@pytest.fixture
def patient(monkeypatch) -> None:
    """Inserts wait as long as it takes."""
    monkeypatch.setattr(recording, "_PATIENCE", PATIENCE)


class Follower:
    """A thread that follows in one way or another, and what it was shown so far."""

    def __init__(self, more: Callable[[int], list[Notification]]) -> None:
        self.seen: list[Notification] = []
        self._more = more
        self._stop = threading.Event()
        self._threads = in_threads(self._run)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.seen += self._more(self.seen[-1].id if self.seen else 0)

    def end(self) -> list[int]:
        self._stop.set()
        ended(self._threads)
        return [each.id for each in self.seen]


def behind(recorder: LogApplicationRecorder) -> Callable[[int], list[Notification]]:
    return lambda last: list(recorder.select_notifications(last, 7, inclusive_of_start=False))


def up_to_the_last(recorder: LogApplicationRecorder) -> Callable[[int], list[Notification]]:
    return lambda last: list(recorder.select_notifications(last + 1, 1_000, recorder.max_notification_id() or 0))


@pytest.fixture
def subscribed(other) -> Iterator[list[Notification]]:
    """What another process was shown so far by a subscription."""
    seen: list[Notification] = []
    with LogApplicationRecorder(other, TEXT).subscribe() as subscription:
        threads = in_threads(lambda: seen.extend(subscription))
        yield seen
        subscription.stop()
        ended(threads)


def test_no_follower_passes_an_append_that_is_not_committed_yet(recorder, log, other, psql, subscribed):
    hold_back(psql)
    (first,) = recorder.insert_events([stored("early", 1)])
    with held_append(other, psql, "account-held"):
        late = [recorder.insert_events([stored("late", version)])[0] for version in range(1, 6)]
        assert (6,) == psql.execute("SELECT count(*) FROM events").fetchone(), "later ones are committed"
        assert 5 == len(recorder.select_events("late")), "an aggregate is read as it is"
        for follower in (recorder, LogApplicationRecorder(other, TEXT)):
            assert first == follower.max_notification_id()
            assert [] == follower.select_notifications(first, 100, inclusive_of_start=False)
            assert [] == follower.select_notifications(first + 1, 100, late[-1], ["t"])
        assert {first} >= {each.id for each in subscribed}
    until(lambda: len(subscribed) == 7, "everything is shown")
    assert ["early", "held", *["late"] * 5] == [each.originator_id for each in subscribed]
    found = recorder.select_notifications(None, 100)
    assert [first, found[1].id, *late] == [each.id for each in found] == [each.id for each in subscribed] == sorted(each.id for each in found)


def test_followers_miss_nothing_while_appends_beside_the_recorder_commit_late(recorder, log, other, psql, subscribed):
    psql.execute(f"""
        CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(random() * 0.02); RETURN NEW; END $$;
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.type = '{LATE}') EXECUTE FUNCTION dawdle();
    """)
    letters = LogProcessRecorder(other, Layout("letter", "text"))
    followers = [Follower(behind(recorder)), Follower(up_to_the_last(recorder)), Follower(behind(LogApplicationRecorder(other, TEXT)))]
    careless = Follower(lambda last: [Notification(None, 0, "", b"", row[0]) for row in rows_behind(psql, last)])  # type: ignore[arg-type]
    given: list[int] = []

    def by_append(name: str) -> None:
        for number in range(20):
            append(log, f"{name}-{number}", range(1, 3), LATE if number % 2 else "t")

    def by_recorder(name: str) -> None:
        own = LogApplicationRecorder(other, TEXT)
        for number in range(20):
            given.extend(own.insert_events([stored(name, number, LATE if number % 3 == 0 else "t")]) or ())

    def answer() -> None:
        sent = 0
        while sent < total:
            found = recorder.select_notifications(letters.max_tracking_id("Bank"), 20, inclusive_of_start=False)
            for notification in found:
                letters.insert_events([StoredEvent(f"{notification.id}", 1, "letter.sent", b"")], tracking=Tracking("Bank", notification.id))
            sent += len(found)

    total = 4 * 20 * 2 + 3 * 20
    ended(in_threads(*(partial(by_append, f"a-{n}") for n in range(4)), *(partial(by_recorder, f"r-{n}") for n in range(3)), answer))
    until(lambda: all(len(each) >= total for each in (subscribed, *(follower.seen for follower in followers))), "everybody is shown everything")
    whole = [each.id for each in recorder.select_notifications(None, 10 * total)]
    assert total == len(whole) == len(set(whole))
    assert sorted(whole) == whole == [each.id for each in subscribed]
    assert [whole] * 3 == [follower.end() for follower in followers]
    assert set(given) < set(whole)
    assert [f"letter-{number}" for number in whole] == [each.stream for each in other.read_all(categories=["letter"])]
    assert len(careless.end()) < total, "whoever reads committed rows by position alone misses those that came late, else this test shows nothing"


def rows_behind(psql: Session, last: int) -> list[tuple[Any, ...]]:
    return psql.execute(
        "SELECT position FROM events JOIN streams ON streams.id = stream_id WHERE category = 'account' AND position > %s ORDER BY 1", (last,)
    ).fetchall()


@pytest.mark.usefixtures("patient")
def test_an_insert_returns_once_followers_are_shown_what_it_wrote(recorder, log, other, psql):
    hold_back(psql)
    with ThreadPoolExecutor(1) as pool:
        with held_append(other, psql):
            inserting = pool.submit(recorder.insert_events, [stored("a", 1)])
            until(lambda: recorder.select_events("a"), "the insert is committed")
            assert None is recorder.max_notification_id()
            assert {inserting} == wait([inserting], 0.2).not_done
        assert inserting.result(PATIENCE) == [recorder.max_notification_id()]


@pytest.mark.usefixtures("patient")
def test_nobody_waits_for_an_insert_that_is_under_way(recorder, log, other, psql):
    hold_back(psql)
    by_recorder: Any = SimpleNamespace(append=lambda *_: recorder.insert_events([stored("held", 1, HELD)]))
    with ThreadPoolExecutor(1) as pool:
        with held_append(by_recorder, psql):
            append(log, "native", range(1, 4))
            append(other, "native", range(4, 6))
            inserting = pool.submit(LogApplicationRecorder(other, TEXT).insert_events, [stored("recorded", 1)])
            until(lambda: recorder.select_events("recorded"), "the other insert is committed")
            assert [1, 2, 3, 4, 5] == [each.originator_version for each in recorder.select_events("native")]
            assert [] == recorder.select_events("held")
        inserting.result(PATIENCE)
    assert ["held", *["native"] * 5, "recorded"] == [each.originator_id for each in recorder.select_notifications(None, 10)]


class LeadingBank(ProcessApplication[str], Bank):
    """The bank as a system wants it."""

    env = {**Bank.env}


class Mirror(ProcessApplication[str]):
    """Follows the bank when it is prompted, and never by itself."""

    env = {"ORIGINATOR_ID_TYPE": "text"}

    def policy(self, domain_event, processing_event):
        """Nothing follows from it."""


@pytest.mark.usefixtures("patient")
def test_a_follower_that_is_prompted_finds_what_it_is_prompted_for(url, other, psql):
    hold_back(psql)
    env = {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders.postgres", "EVENTLOG_URL": url, "MIRROR_EVENTLOG_CATEGORY": "mirror"}
    with SingleThreadedRunner[str](System(pipes=[[LeadingBank, Mirror]]), env) as runner, ThreadPoolExecutor(1) as pool:
        bank, mirror = runner.get(LeadingBank), runner.get(Mirror)
        with held_append(other, psql):
            saving = pool.submit(bank.save, Account("acct-1", "Ada"))
            until(lambda: bank.recorder.select_events("acct-1"), "the account is committed")
            assert {saving} == wait([saving], 0.2).not_done, "its followers would look in vain, and not look again"
        saving.result(PATIENCE)
        assert bank.recorder.max_notification_id() == mirror.recorder.max_tracking_id("LeadingBank")
