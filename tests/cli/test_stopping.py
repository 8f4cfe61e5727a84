"""Stopping a run whose agent holds up the whole process: signals do not wait for the event loop."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cli.conftest import begin, call, child, eventually

BLOCKED = """
import pathlib, time
from intentlog.agents import App, agent

@agent("stones")
async def stones(ctx, text: str):
    pathlib.Path("reached").write_text("")
    time.sleep(1000)

app = App(agents=[stones])
"""


@pytest.fixture
def blocking(shop):
    (shop / "stone.py").write_text(BLOCKED)
    call("send", "stones", "k", '"x"')
    return shop


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_agent_that_blocks_is_ended_by_the_second_signal(blocking, number, code):
    with begin("run", "stone:app", "--until-idle") as running:
        try:
            eventually(Path("reached").exists)
            assert running.stderr is not None
            running.send_signal(number)
            assert "stopping when what is in flight has ended; once more stops at once" in running.stderr.readline()
            running.send_signal(number)
            out, err = running.communicate(timeout=10)
        finally:
            running.kill()
    assert (code, "", "stopped at once; the next run goes on from the log\n") == (running.returncode, out, err)


def test_the_handlers_of_before_are_back_when_the_run_is_over(shop):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert 0 == call("run", "shop:app", "--until-idle").exit_code
    assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))


def test_a_signal_before_there_is_a_loop_is_heeded(shop):
    (shop / "early.py").write_text("import os, signal\nfrom intentlog.effector import serving\n" + SEND + "from shop import app\n")
    done = child("run", "early:app", timeout=20)
    assert (0, True) == (done.returncode, "stopping when" in done.stderr), done.stderr


SEND = """
was = serving.asyncio.run
def run(*given):
    os.kill(os.getpid(), signal.SIGTERM)
    return was(*given)
serving.asyncio.run = run
"""
