"""What these tests share: somebody's own session, patience, and a row that stays invisible while later ones commit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY

Session: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

PATIENCE: Final = 60.0
HELD: Final = "held.back"
_GATE: Final = 20_260_101
new_id = id_maker()


def event(content: bytes = b"{}", kind: str = "thing.happened") -> NewEvent:
    return NewEvent(new_id(), kind, 1, content)


def until(condition: Callable[[], Any], what: str) -> Any:
    """What ``condition`` gives once that is something."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:g} s"
        time.sleep(0.005)
    return found


def hold_back(psql: Session) -> None:
    """From now on an event of type ``HELD`` is written behind a gate: its transaction has its id by then, and stays open."""
    psql.execute(f"""
        CREATE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock({_GATE}); RETURN NEW; END $$;
        CREATE TRIGGER gate BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.type = '{HELD}') EXECUTE FUNCTION wait_at_the_gate();
    """)


@contextmanager
def held_append(log: EventLog, psql: Session, stream: str = "held-1") -> Iterator[None]:
    """While the block lasts an append to ``stream`` is under way, and nobody can see it; afterwards it is committed."""
    psql.execute(f"SELECT pg_advisory_lock({_GATE})")
    faults: list[BaseException] = []

    def append() -> None:
        try:
            log.append(stream, [event(kind=HELD)], ANY)
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=append)
    thread.start()
    try:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: psql.execute(waiting).fetchone() == (1,), "the append stands at the gate")
        yield
    finally:
        psql.execute(f"SELECT pg_advisory_unlock({_GATE})")
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert faults == []


def begin(program: str, *words: str) -> subprocess.Popen[str]:
    """A Python program as a process of its own."""
    command = [sys.executable, "-W", "error", "-c", program, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})


def in_threads(*bodies: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=body, daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    return threads


def ended(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread that should have ended runs on"
