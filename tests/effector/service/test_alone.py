"""What a replica loads, asked of the process itself when its work is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effector.service.replicas import World

RUN = """
import json, sys
from intentlog.effector.replica import serve
code = serve({"registry": sys.argv[1], "log": sys.argv[2]}, until_idle=True)
json.dump({"code": code, "modules": sorted(sys.modules)}, sys.stdout)
"""
#: All that an effector needs of the agents' room.
AGENTS = {
    *(
        "calling",
        "committer",
        "declaring",
        "errors",
        "facts",
        "facts_beside",
        "failures",
        "intents",
        "lazily",
        "leasing",
        "models",
        "queues",
        "reading",
        "retry",
    ),
    *("own_tasks", "runtime_events", "signing", "tool_policies", "tools", "tuning", "vouching"),
}
APP = """
from intentlog.agents import App, agent
from tools import work

@agent("a")
async def a(ctx, text: str):
    ctx.act(work, name=text)

app = App(agents=[a])
"""


def loaded(world: World, registry: str) -> set[str]:
    intent = world.stage("k")
    done = subprocess.run([sys.executable, "-W", "error", "-c", RUN, registry, world.url], cwd=world.folder, capture_output=True, text=True, timeout=60)
    assert 0 == done.returncode, done.stderr
    said = json.loads(done.stdout)
    assert (0, ["OK"]) == (said["code"], world.statuses(intent))
    return set(said["modules"])


def test_with_tools_alone_no_runtime_no_model_client_and_no_bus_is_loaded(local: World):
    modules = loaded(local, "tools:TOOLS")
    assert {f"intentlog.agents.{name}" for name in AGENTS} == {each for each in modules if each.startswith("intentlog.agents.")}
    assert set() == modules & {"httpx", "kafka", "redis", "psycopg", "cronsim", "eventsourcing", "google.cloud", "opentelemetry", "intentlog.replay"}
    assert set() == {each for each in modules if each.startswith(("intentlog.effector.bus", "intentlog.effector.dedup", "intentlog.eventlog.postgres"))}


def test_an_app_brings_its_agents_and_nothing_that_runs_them(local: World):
    (local.folder / "app.py").write_text(APP)
    modules = loaded(local, "app:app")
    runtime = {"worker", "turns", "activation", "context", "linear", "fibers", "awaiting", "appends", "clients", "client"}
    assert set() == {each for each in modules if each.startswith("intentlog.agents.") and each.split(".")[2] in runtime}
    assert "intentlog.agents.app" in modules


@pytest.mark.parametrize("module", ["intentlog.effector.settings", "intentlog.effector.commands_effector"])
def test_the_options_are_known_without_any_of_it(module: str):
    ask = f"import sys, {module}; print(*sorted(each for each in sys.modules if each.startswith('intentlog.') and '.eventlog' not in each))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=True, timeout=60, cwd=Path(__file__).parent)
    known = {"intentlog.effector", "intentlog.agents", "intentlog.agents.lazily", "intentlog.effector.settings", module}
    assert known == set(done.stdout.split()) - {"intentlog.effector.cli", "intentlog.agents.options"}
