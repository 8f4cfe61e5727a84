"""From a URL to a bus: who is asked, and what is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from intentlog.effector.bus import BadBusUrl, Buses, MemoryBus
from tests.effector.bus.replicas import ENTRY_POINTS, World
from tests.house.tree import ROOT
from tests.services.bus import BusServer, TcpBus

RUN = """
import json, sys
from intentlog.effector.replica import serve
code = serve(json.loads(sys.argv[1]), until_idle=True)
json.dump({"code": code, "modules": sorted(sys.modules)}, sys.stdout)
"""


class Named(MemoryBus):
    closed = 0

    def close(self) -> None:
        type(self).closed += 1


def test_each_bus_is_made_once_and_closed_once():
    buses = Buses({"mine": Named, "other": Named})
    with pytest.raises(BadBusUrl):
        buses.at("mine://x")
    first = buses.at("memory://a/b")
    assert (True, True) == (first is buses.at("memory://c/d"), isinstance(first, MemoryBus))
    before = Named.closed
    buses.close()
    buses.close()
    assert before + 1 == Named.closed


def test_what_is_handed_in_outranks_what_is_here():
    assert type(Buses({"memory": Named}).at("memory://a/b")) is Named


@pytest.mark.parametrize("url", ["pigeon://me:hunter2@loft/x", "", "memory", "://x"])
def test_a_url_that_nobody_understands_is_refused_with_those_that_are_known(url: str):
    with pytest.raises(BadBusUrl, match=r"must begin with one of .*memory://.*mine://") as refused:
        Buses({"mine": Named}).at(url)
    assert "hunter2" not in str(refused.value)


def test_a_bus_of_another_distribution_is_found_by_its_entry_point(tmp_path: Path, monkeypatch):
    installed = tmp_path / "test_bus-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: test-bus\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(ENTRY_POINTS)
    with pytest.raises(BadBusUrl):
        Buses().at("tcp://127.0.0.1:1/x")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert type(Buses().at("tcp://127.0.0.1:1/x")) is TcpBus


def test_a_replica_on_one_bus_loads_no_other_and_neither_runtime_nor_model_client(tmp_path: Path):
    with BusServer() as server:
        world = World(tmp_path, f"sqlite:///{tmp_path}/dedup.db", server)
        intent = world.stage("k")
        given = {"registry": "tools:TOOLS", "dedup": world.dedup, "intents_from": world.url("intents"), "results_to": world.url("results")}
        given |= {"approvals_to": world.url("approvals"), "dead_letters_to": world.url("dead")}
        words = [sys.executable, "-W", "error", "-c", RUN, json.dumps(given)]
        done = subprocess.run(words, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)
        assert 0 == done.returncode, done.stderr
        said = json.loads(done.stdout)
        assert (0, ["OK"], [intent]) == (said["code"], world.statuses(intent), world.ledger())
        modules = set(said["modules"])
        world.close()
    unwanted = {"httpx", "kafka", "redis", "psycopg", "cronsim", "eventsourcing", "google.cloud", "opentelemetry", "intentlog.replay"}
    assert set() == modules & unwanted
    assert set() == {each for each in modules if each.startswith(("intentlog.agents.worker", "intentlog.agents.turns", "intentlog.agents.clients"))}
    assert set() == modules & {"intentlog.effector.dedup.redis", "intentlog.effector.dedup.postgres", "intentlog.effector.bus.kafka"}
