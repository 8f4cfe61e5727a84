"""A process that was stopped beyond its lease and goes on later: by then its keys are somebody else's, and it can commit nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests.acceptance.forking import Forked
from tests.acceptance.harness import Ended, end_of
from tests.acceptance.kill.laws import faults
from tests.acceptance.kill.lives import Case, Life, case, orders_of, read
from tests.acceptance.kill.orders import EFFECTS

LEASE = ("--lease-ms", "600")


def stop_between_commits(made: Case, started: subprocess.Popen[str] | Forked) -> None:
    """SIGSTOP, at a moment when the child is not writing: nobody could take over before it went on."""
    while True:
        os.kill(started.pid, signal.SIGSTOP)
        if not made.store.in_a_commit(made.url):
            return
        os.kill(started.pid, signal.SIGCONT)
        time.sleep(0.01)


def overtaken(made: Case, what: str) -> None:
    """One child is stopped while it waits for ``what``, another one does all that is left, then the first goes on.

    To the laws a process that is stopped for so long is as good as killed: what it left is what was there when it stopped.
    """
    made.world.held[what, "life-1"] = True
    with made.start("life-1", *LEASE) as first:
        assert made.world.arrived.wait(30)
        time.sleep(0.2)
        stop_between_commits(made, first)
        made.lives.append(Life("life-1", Ended(-signal.SIGKILL, "stopped"), read(made.url)))
        made.live(*LEASE)
        after, calls = made.left.events, list(made.world.calls)
        made.world.released.set()
        os.kill(first.pid, signal.SIGCONT)
        ended = end_of(first)
        assert 0 == ended.code, ended.output
        assert after == read(made.url).events
        assert calls == made.world.calls


@pytest.mark.parametrize("kind", ["idempotent", "plain", "told"])
def test_overtaken_while_a_tool_runs_its_outcome_is_refused(kind, tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", orders_of((kind,), keys=2, each=2)) as made:
        overtaken(made, "pay")
        assert [] == faults(made)
        interrupted = made.lives[0].left.interrupted
        made.buried("life-1 again", Ended(0, ""))
        assert 2 == len(interrupted) == made.counts["stale"] + made.counts["refused"]
        assert dict.fromkeys(interrupted, 2 if kind == "idempotent" else 1) == {key: made.world.count(*EFFECTS)[key] for key in interrupted}


def test_overtaken_while_a_model_answers_its_answer_is_discarded(tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", orders_of(("idempotent",), keys=2, each=2)) as made:
        overtaken(made, "model")
        assert [] == faults(made)
        models = made.world.count("model")
        assert [1] * 10 + [2] * 2 == sorted(models.values())
