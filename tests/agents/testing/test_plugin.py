"""The plugin as a user's test run finds it: by its entry point, in a process and folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

TEST = """
from __future__ import annotations
from typing import Any
from intentlog.agents import ActivationContext, App, agent, tool
from intentlog.agents.testing import Harness, VirtualClock, completed, given, performed, suspended

@tool(side_effect=True)
async def ring(bell: str) -> str:
    return f"rang {bell}"

@agent("ringers")
async def ringers(ctx: ActivationContext[Any], bell: str) -> Any:
    return await ctx.perform(ring, bell=bell)

app = App(agents=[ringers])

def test_a_turn():
    given(ringers).when("big").then(performed(ring, bell="big"), suspended())

def test_a_turn_that_is_not_so():
    given(ringers).when("big").then(performed(ring, bell="small"), suspended())

def test_a_run(harness, virtual_clock):
    assert isinstance(harness, Harness) and isinstance(virtual_clock, VirtualClock)
    for boundary in harness.boundaries:
        run = harness.start(app, crash_at=boundary, clock=virtual_clock).send("ringers", "k", "big").until_idle()
        assert len(run.effects) <= 1
        run.assert_replays()
"""


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-W", "error", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_plugin_is_an_entry_point():
    assert ["intentlog.agents.testing.plugin"] == [each.value for each in entry_points(group="pytest11", name="intentlog")]


def test_the_fixtures_are_there_without_an_import(tmp_path: Path):
    (tmp_path / "test_bells.py").write_text(TEST)
    done = pytest_in(tmp_path)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "> performed(ring, bell='small')  │ performed(ring, bell='big')" in done.stdout
    assert "scenario.py" not in done.stdout, "the line that is shown is the test's own"


def test_the_plugin_alone_loads_nothing_of_the_runtime(tmp_path: Path):
    loaded = "[name for name in sys.modules if name.startswith(('intentlog.agents.worker', 'intentlog.eventlog', 'intentlog.effector'))]"
    (tmp_path / "test_nothing.py").write_text(f"import sys\n\ndef test_it():\n    assert [] == {loaded}\n")
    done = pytest_in(tmp_path)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_the_fixtures_are_listed_with_what_they_are_for(tmp_path: Path):
    shown = pytest_in(tmp_path, "--fixtures").stdout
    assert "Starts apps in memory: ``harness.start(app, crash_at=…)``." in shown
    assert "A clock that stands still until it is told" in shown
