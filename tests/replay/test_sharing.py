"""Streams shared out among processes come out as in one, in order, on each store; nothing is left running."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.replay import StreamReplay, replay_all
from intentlog.replay.child import Order
from intentlog.replay.errors import CodeUnusable
from intentlog.replay.looking import Elsewhere
from intentlog.replay.sharing import Child, UsageFault, shared_out
from tests.replay.paid import app
from tests.replay.world import RefundAsked, World, app_of, paying

ROOT = Path(__file__).resolve().parents[2]
NAMES = [f"accounts-{letter}" for letter in "cabd"]


@pytest.fixture
def filled(shared_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(ROOT)
    world = World(shared_url)
    for name in NAMES:
        world.send(app_of(paying), RefundAsked(name, 7), key=name.partition("-")[2])
    world.run(app_of(paying))
    yield world
    world.log.close()


def order(url: str, app_name: str = "tests.replay.paid:app", **options) -> Order:
    return Order("replay", url, app_name, **options)


def test_the_answers_are_those_of_one_process_in_the_order_that_was_asked(filled, shared_url):
    expected: list[StreamReplay] = list(replay_all(filled.log, app, NAMES))
    found = list(Elsewhere(order(shared_url), 2).replayed(NAMES, only_runs=False, category=None))
    assert (expected, NAMES) == (found, [each.stream for each in found])


def test_whoever_stops_asking_leaves_no_process_behind(filled, shared_url, monkeypatch):
    begun: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noting(*words, **options):
        begun.append(popen(*words, **options))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", noting)
    with closing(shared_out(order(shared_url), NAMES * 50, 2)) as found:
        stream, first = next(found)
    assert (NAMES[0], "same") == (stream, first["verdict"])
    assert begun
    assert all(child.poll() is not None for child in begun)


def test_an_app_that_cannot_be_loaded_is_told_by_its_own_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("raise RuntimeError('out of paper')\n")
    (tmp_path / "leaving.py").write_text("import os\nos._exit(5)\n")
    url = f"sqlite:///{tmp_path}/none.db"
    with pytest.raises(UsageFault, match="there is no module 'nothing'"):
        Child(order(url, "nothing:app"))
    with pytest.raises(CodeUnusable, match="out of paper"):
        Child(order(url, "broken:app"))
    with pytest.raises(CodeUnusable, match="exit code 5"):
        Child(order(url, "leaving:app"))
