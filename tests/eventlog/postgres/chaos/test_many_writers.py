"""Fifty writers whose commits come late and out of order, four tails, two of them killed: each is shown every event, in one order, once.

``CHAOS_HOLD_S`` is how long an unrelated transaction is held open; ten seconds show all that a minute does, for nothing
in the store depends on the length but the alarm, which comes after five. ``CHAOS_SEED`` chooses what the writers do.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import attrs
import psycopg
import pytest

from intentlog.eventlog.postgres import PostgresLog
from tests.acceptance.harness import child, end_of
from tests.eventlog.postgres.chaos.checking import Ack, Entry, checkpoint_faults, history_faults, tail_faults
from tests.eventlog.postgres.chaos.tails import entries_of, kept, lives
from tests.eventlog.postgres_reading.helping import until
from tests.services.postgres import PostgresServer

HOLD = float(os.environ.get("CHAOS_HOLD_S", "10"))
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
WRITERS = (13, 13, 12, 12)
#: name → kind, and whether it is killed.
TAILS = {"lines": ("lines", False), "view": ("view", False), "killed-lines": ("lines", True), "killed-view": ("view", True)}
KILLS = 3
#: The first events of a transaction wait for a while behind everything else it does: it has its id by then, and nobody can see it.
LATE_COMMITS = """
    CREATE FUNCTION commit_late() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_sleep(CASE WHEN random() < 0.5 THEN 0 WHEN random() < 0.9 THEN random() * 0.05 ELSE random() * 0.5 END);
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.position & 1048575 = 1) EXECUTE FUNCTION commit_late();
"""

pytestmark = pytest.mark.timeout(120 + 3 * HOLD)


@attrs.define(eq=False)
class Scene:
    """Writers and tails, as processes, around one log."""

    url: str
    log: PostgresLog
    folder: Path
    #: Checkpoints as they were from moment to moment.
    samples: list[dict[str, int]] = attrs.field(factory=list)
    #: Names of the tails that were killed, once a kill.
    kills: list[str] = attrs.field(factory=list)

    def module(self, name: str, *words: object) -> list[str]:
        return [sys.executable, "-m", f"tests.eventlog.postgres.chaos.{name}", self.url, *map(str, words)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Fifty writers, from when all tails follow until the block has ended and all kills are done."""
        until(lambda: len(list(self.folder.glob("*-1"))) == len(TAILS), "all tails follow")
        url = self.url
        self.url = f"{url}?pool_size={max(WRITERS)}"
        with ExitStack() as held:
            started = [held.enter_context(child(self.module("writers", self.folder, sum(WRITERS[:place]), count, SEED))) for place, count in enumerate(WRITERS)]
            self.url = url
            until(lambda: len(list(self.folder.glob("writer-*"))) == sum(WRITERS), "all writers write")
            yield
            until(lambda: len(self.kills) == 2 * KILLS, "all kills are done")
            (self.folder / "enough").touch()
            for each in started:
                ended = end_of(each)
                assert 0 == ended.code, ended.output

    @contextmanager
    def following(self) -> Iterator[None]:
        """Four tails; when the block has ended they go on to the end of the log."""
        faults: list[BaseException] = []
        stop = threading.Event()
        threads = [threading.Thread(target=self._caught, args=(faults, self._live, name, kind, killed)) for name, (kind, killed) in TAILS.items()]
        threads.append(threading.Thread(target=self._caught, args=(faults, self._sample, stop)))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            end = self.folder / "end.new"
            end.write_text(str(self.log.last_position()))
            end.rename(self.folder / "end")
            for thread in threads[:-1]:
                thread.join()
            stop.set()
            threads[-1].join()
        assert [] == faults

    def _caught(self, faults, body, *arguments) -> None:
        try:
            body(*arguments)
        except BaseException as fault:
            faults.append(fault)

    def _live(self, name: str, kind: str, killed: bool) -> None:
        moments = random.Random(f"{SEED} {name}")
        for life in range(1, KILLS + 2 if killed else 2):
            before, path = self.log.checkpoints.load(name), self.folder / f"{name}-{life}"
            with child(self.module("tails", name, self.folder, life, kind)) as started:
                if life <= KILLS and killed:
                    # A checkpoint may still be saved for the life before, whose server process lives on for a moment.
                    until(partial(_begun, path), f"{name} begins its life {life}")
                    until(partial(self._is_past, name, before), f"{name} gets on in its life {life}")
                    time.sleep(moments.uniform(0, 0.3))  # a random moment is the point
                    started.kill()
                    assert end_of(started).killed
                    self.kills.append(name)
                else:
                    ended = end_of(started)
                    assert 0 == ended.code, ended.output

    def _is_past(self, name: str, position: int) -> bool:
        return self.log.checkpoints.load(name) > position

    def _sample(self, stop: threading.Event) -> None:
        while not stop.wait(0.05):
            self.samples.append(self.log.checkpoints.all())

    def faults(self) -> Iterator[str]:
        """Everything that does not fit, when all have ended."""
        order = entries_of(self.log.read_all())
        yield from history_faults(order, self._acks())
        for name, (kind, _) in TAILS.items():
            yield from tail_faults(name, [kept(self.log.views.read(name))] if kind == "view" else lives(self.folder, name), order)
        yield from checkpoint_faults(self.samples)

    def _acks(self) -> Iterator[Ack]:
        for number in range(sum(WRITERS)):
            for line in (self.folder / f"writer-{number}").read_text().splitlines():
                writer, entries, refused, again = json.loads(line)
                yield Ack(writer, tuple(Entry(*entry) for entry in entries), tuple(refused), again)


def _begun(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


@pytest.fixture
def scene(url, log, tmp_path) -> Scene:
    with psycopg.connect(url, autocommit=True, options="-c search_path=intentlog") as connection:
        connection.execute(LATE_COMMITS.encode())
    print(f"CHAOS_SEED={SEED}")
    return Scene(url, log, tmp_path)


def test_every_tail_is_shown_every_event_in_one_order_once(scene):
    with scene.following(), scene.writing():
        time.sleep(4.0)  # so long they write, or for as long as the kills take
    assert [] == list(scene.faults())
    count = len(list(scene.log.read_all(payloads=False)))
    assert count > 500, "so few events show nothing"


def test_a_transaction_held_open_elsewhere_is_named_and_loses_nothing(scene, server: PostgresServer):
    told: list[str] = []
    elsewhere = server.create_database()
    with scene.log.watch(told.append), scene.following(), scene.writing():
        until(lambda: scene.log.checkpoints.load("lines") > 0, "the tails get on")
        with psycopg.connect(elsewhere, application_name="forgotten") as session:
            session.execute("CREATE TABLE unrelated (number int)")
            (holder,) = session.execute("SELECT pg_current_xact_id()::text::bigint").fetchone() or ()
            session.execute("SELECT 'what was I doing'")
            pid, released = session.info.backend_pid, time.monotonic() + HOLD
            while time.monotonic() < released:
                assert scene.log.last_position() < holder << 20
                assert all(position < holder << 20 for position in scene.log.checkpoints.all().values())
                time.sleep(0.1)
            alarms = [text for text in told if "cannot be shown" in text]
            hidden = scene.log.horizon()
            session.rollback()
        until(lambda: scene.log.last_position() > holder << 20, "what was hidden is shown")
        until(lambda: any(f"pid {pid}" in text and "no longer" in text for text in told), "its end is told")
    assert alarms and all(word in alarms[0] for word in (f"pid {pid} ", "forgotten", elsewhere.rpartition("/")[2], "what was I doing"))
    assert hidden is not None and hidden.events > 100
    assert [] == list(scene.faults())
