"""A whole application of the library, with text ids, on the log: over each store, encrypted, and followed by a projection."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.cipher import AESCipher
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import IntegrityError, MapperDeserialisationError, Tracking
from eventsourcing.projection import Projection, ProjectionRunner
from psycopg.conninfo import conninfo_to_dict

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.recorders import LogTrackingRecorder
from tests.eventlog.recorders import bank
from tests.eventlog.recorders.bank import Account, Bank


@pytest.fixture
def path(tmp_path) -> str:
    return f"{tmp_path}/bank.db"


@pytest.fixture
def memory_env() -> dict[str, str]:
    return {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders.memory"}


@pytest.fixture
def sqlite_env(path) -> dict[str, str]:
    return {"PERSISTENCE_MODULE": bank.SQLITE, "EVENTLOG_URL": f"sqlite:///{path}"}


@pytest.fixture
def postgres_env(postgres_url) -> dict[str, str]:
    return {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders.postgres", "EVENTLOG_URL": f"{postgres_url}?schema=bank"}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def app(request):
    with Bank(request.getfixturevalue(f"{request.param}_env")) as opened:
        yield opened


@pytest.fixture(params=["sqlite", "postgres"])
def env(request) -> dict[str, str]:
    """A log that several processes may use."""
    found: dict[str, str] = request.getfixturevalue(f"{request.param}_env")
    return found


def test_an_aggregate_is_saved_and_found(app):
    app.open("acct-42", "Ada")
    app.deposit("acct-42", 500)
    found: Account = app.repository.get("acct-42")
    assert ("acct-42", 2, "Ada", 500) == (found.id, found.version, found.owner, found.cents)
    assert "acct-43" not in app.repository
    with pytest.raises(AggregateNotFoundError):
        app.repository.get("acct-43")


def test_an_aggregate_is_found_as_of_any_version(app):
    app.open("acct-42", "Ada")
    for _ in range(9):
        app.deposit("acct-42", 1)
    assert list(range(10)) == [app.cents("acct-42", version) for version in range(1, 11)]


def test_snapshots_are_taken_and_used_and_not_needed(app):
    app.open("acct-42", "Ada")
    for _ in range(6):
        app.deposit("acct-42", 1)
    assert [6] == [each.originator_version for each in app.snapshots.get("acct-42")]
    assert (6, 5, 2) == (app.cents("acct-42"), app.cents("acct-42", 6), app.cents("acct-42", 3))
    assert 1 == app.factory.log.snapshots.delete()
    assert 6 == app.cents("acct-42")


def test_the_notification_log_has_everything_in_order(app):
    app.open("acct-1", "Ada")
    app.open("acct-2", "Bob")
    app.deposit("acct-1", 5)
    section = app.notification_log["1,10"]
    assert (f"{section.items[0].id},{section.items[-1].id}", None) == (section.id, section.next_id)
    assert [("acct-1", 1), ("acct-2", 1), ("acct-1", 2)] == [(each.originator_id, each.originator_version) for each in section.items]


def test_of_two_copies_the_second_saved_is_refused(app):
    app.open("acct-42", "Ada")
    one: Account = app.repository.get("acct-42")
    other: Account = app.repository.get("acct-42")
    one.deposit(1)
    other.deposit(2)
    given = [each.notification.id for each in app.save(one)]
    assert given == [app.recorder.max_notification_id()]
    with pytest.raises(IntegrityError, match="Wrong expected version of account-acct-42"):
        app.save(other)
    assert 1 == app.cents("acct-42")


def test_aggregates_saved_together_are_saved_together_or_not_at_all(app):
    app.open("acct-1", "Ada")
    stale: Account = app.repository.get("acct-1")
    app.deposit("acct-1", 1)
    stale.deposit(5)
    with pytest.raises(IntegrityError):
        app.save(Account("acct-2", "Bob"), stale)
    assert "acct-2" not in app.repository


def test_another_process_works_on_the_same_log(env):
    with Bank(env) as app:
        app.open("acct-42", "Ada")
        stale: Account = app.repository.get("acct-42")
        subprocess.run([sys.executable, bank.__file__, "acct-42", "700"], check=True, timeout=60, env={**os.environ, **env})
        assert 700 == app.cents("acct-42")
        stale.deposit(1)
        with pytest.raises(IntegrityError):
            app.save(stale)


def test_two_handles_race_and_no_deposit_is_lost(env):
    with Bank(env) as one, Bank(env) as other, ThreadPoolExecutor(2) as pool:
        one.open("acct-42", "Ada")

        def deposit(app: Bank) -> None:
            for _ in range(20):
                while True:
                    try:
                        app.deposit("acct-42", 1)
                        break
                    except IntegrityError:
                        continue

        list(pool.map(deposit, (one, other)))
        assert (40, 40) == (one.cents("acct-42"), other.cents("acct-42"))


def test_the_log_shows_plain_streams(env):
    with Bank(env) as app:
        app.open("acct-42", "Ada")
        app.deposit("acct-42", 500)
    log = open_log(env["EVENTLOG_URL"], create=False)
    assert ["account-acct-42"] == list(log.streams())
    assert ["account.opened", "account.deposited"] == [each.type for each in log.read("account-acct-42")]
    log.close()


def test_cipher_and_compressor_are_the_applications(path):
    env = {"SQLITE_DBNAME": path, "CIPHER_KEY": AESCipher.create_key(32), "COMPRESSOR_TOPIC": "zlib"}
    with Bank(env) as app:
        app.open("acct-42", "Ada Lovelace")
        for _ in range(4):
            app.deposit("acct-42", 1)
        assert (4, 2) == (app.cents("acct-42"), app.cents("acct-42", 3))
        first = app.recorder.select_events("acct-42")[0]
        assert app.mapper.cipher is not None
        assert b"Lovelace" in zlib.decompress(app.mapper.cipher.decrypt(first.state))
        assert b"Lovelace" not in first.state
    assert b"Lovelace" not in Path(path).read_bytes()
    with Bank({**env, "CIPHER_KEY": AESCipher.create_key(32)}) as app, pytest.raises(MapperDeserialisationError, match="acct-42"):
        app.cents("acct-42")


class Dog(Aggregate):
    @event("Registered")
    def __init__(self) -> None:
        self.tricks: list[str] = []

    @event("TrickAdded")
    def add_trick(self, trick: str) -> None:
        self.tricks.append(trick)


def test_aggregates_with_uuids_and_topics_of_the_librarys_making_work_too(env):
    with Application[UUID](env) as app:
        dog = Dog()
        dog.add_trick("sit")
        app.save(dog)
        found: Dog = app.repository.get(dog.id)
        assert ["sit"] == found.tricks
    log = open_log(env["EVENTLOG_URL"])
    assert [f"aggregate-{dog.id}"] == list(log.streams())
    log.close()


def test_a_schema_of_the_librarys_own_postgresql_module_is_shared_and_left_alone(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as session:
        session.execute("CREATE SCHEMA bank")
    server = conninfo_to_dict(postgres_url)
    env = {f"POSTGRES_{name}".upper(): str(server[name]) for name in ("dbname", "host", "port", "user")}
    env |= {"POSTGRES_SCHEMA": "bank", "POSTGRES_PASSWORD": str(server.get("password", "none"))}
    with Bank({**env, "PERSISTENCE_MODULE": "eventsourcing.postgres"}) as theirs:
        theirs.open("acct-42", "Ada")
        theirs.deposit("acct-42", 5)
        with Bank({**env, "PERSISTENCE_MODULE": "intentlog.eventlog.recorders.postgres"}) as ours:
            ours.recorder.insert_events(theirs.recorder.select_notifications(None, 10))
            ours.deposit("acct-42", 6)
            assert (5, 11) == (theirs.cents("acct-42"), ours.cents("acct-42"))


class Total(LogTrackingRecorder):
    """A view in memory; its tracking is in the log."""

    cents = 0

    def add(self, cents: int, tracking: Tracking) -> None:
        self.cents += cents  # first: whoever waits for the tracking looks at it then
        self.insert_tracking(tracking)


class Totals(Projection[Total]):
    name = "totals"

    def process_event(self, domain_event, tracking):
        self.view.add(getattr(domain_event, "cents", 0), tracking)


def test_a_projection_follows_and_its_readers_wait_for_it(env):
    with ProjectionRunner(application_class=Bank, projection_class=Totals, view_class=Total, env={**env, "TOTALS_EVENTLOG_CATEGORY": "totals"}) as runner:
        runner.app.open("acct-1", "Ada")
        runner.app.deposit("acct-1", 5)
        runner.app.deposit("acct-1", 6)
        runner.wait(runner.app.recorder.max_notification_id(), timeout=20)
        assert 11 == runner.projection.view.cents
    log = open_log(env["EVENTLOG_URL"])
    assert ["totals.tracking-Bank"] == list(log.streams("totals"))
    log.close()
