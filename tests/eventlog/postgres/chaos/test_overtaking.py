"""A worker that has nothing to do hands its key back with no wake-up; an input that arrives at that very moment must not lose its own."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg
import pytest

from intentlog.eventlog.errors import WrongExpectedVersion
from intentlog.eventlog.log import Appended, AppendRequest, Fence, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing.maker import event
from intentlog.eventlog.versions import ANY
from tests.eventlog.postgres_reading.helping import until

GATE = 20_260_404
#: Behind the look at the heads and before everything else, whether there are events or not.
STOP_THERE = f"""
    CREATE FUNCTION intentlog.stop_there() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('application_name') = 'slow' THEN PERFORM pg_advisory_xact_lock({GATE}); END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER gate BEFORE INSERT ON intentlog.events EXECUTE FUNCTION intentlog.stop_there();
"""
LARGE = 5 << 20


@pytest.mark.parametrize("beside", [0, LARGE], ids=["at once", "in several statements"])
def test_a_wake_up_that_comes_while_a_key_is_handed_back_is_kept(postgres_url, beside):
    with closing(open_log(postgres_url)) as log, closing(open_log(f"{postgres_url}?application_name=slow")) as slow:
        log.append("a-1", [event()], -1, wakes=[Wake("turn", 1)])
        (claim,) = log.schedule.claim_due("turn", "me", now=2, until=1_000, limit=1)
        parts = [StreamAppend("a-1", [], 0, [Wake("turn", None)]), StreamAppend("b-1", [event(bytes(beside))] if beside else [], -1)]
        back = AppendRequest(parts, [Fence("turn", "a-1", claim.token, release=True)])
        outcomes = []
        with psycopg.connect(postgres_url, autocommit=True) as session:
            session.execute(STOP_THERE.encode())
            session.execute("SELECT pg_advisory_lock(%s)", (GATE,))
            thread = threading.Thread(target=lambda: outcomes.extend(slow.append_batch([back])))
            thread.start()
            waiting = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {GATE}"
            until(lambda: session.execute(waiting.encode()).fetchone() == (1,), "the key is about to be handed back")
            log.append("a-1", [event()], ANY, wakes=[Wake("turn", 5, sooner=True)])
            session.execute("SELECT pg_advisory_unlock(%s)", (GATE,))
            thread.join(60)
        (outcome,) = outcomes
        assert isinstance(outcome, WrongExpectedVersion) and outcome.actual == 1
        # It was due before, and the input may only have brought that forward.
        assert {"a-1": 1} == log.schedule.wakes("turn", ["a-1"])
        again = AppendRequest([StreamAppend("a-1", [], 1, [Wake("turn", None)])], [Fence("turn", "a-1", claim.token, release=True)])
        assert isinstance(slow.append_batch([again])[0], Appended)
        assert {"a-1": None} == log.schedule.wakes("turn", ["a-1"])
