"""The boundaries at which a process may be told to die."""

from __future__ import annotations

import pytest

from intentlog.effector.crash import BOUNDARIES, crash_at
from tests.cli.conftest import child


def test_it_dies_at_the_nth_time_of_its_boundary_only():
    deaths: list[str] = []
    boundary = crash_at("settled:2", die=lambda: deaths.append("now"))
    for name in ("settled", "tool.called", "tool.called"):
        boundary(name, "s")
    assert [] == deaths
    boundary("settled", "s")
    boundary("settled", "s")
    assert ["now"] == deaths


@pytest.mark.parametrize("spec", ["", "tea.time", "settled:", "settled:0", "settled:-1", "settled:x", "settled:1:2", "Settled"])
def test_what_names_no_boundary_is_refused_with_those_there_are(spec):
    with pytest.raises(ValueError, match=r"names no boundary; there are: input\.offered|from 1"):
        crash_at(spec)


def test_an_unknown_boundary_is_a_usage_error(shop):
    done = child("run", "shop:app", "--until-idle", EVENTLOG_CRASH_AT="tea.time")
    assert (2, True) == (done.returncode, "tea.time" in done.stderr and "tool.called" in done.stderr)


@pytest.mark.parametrize("name", [each for each in BOUNDARIES if not each.startswith("model.")])
def test_a_killed_run_started_again_ends_as_if_nothing_had_been(shop, name):
    line = '{"agent": "orders", "key": "k", "type": "order.placed", "payload": {"order_id": "o"}, "id": "one"}\n'
    (shop / "orders.jsonl").write_text(line)
    killed = child("run", "shop:app", "--until-idle", "--input", "orders.jsonl", EVENTLOG_CRASH_AT=name)
    assert -9 == killed.returncode, killed.stderr
    again = child("run", "shop:app", "--until-idle", "--input", "orders.jsonl")
    assert 0 == again.returncode, again.stderr
    shown = child("streams", "--json").stdout
    assert '"state": "completed"' in shown
    assert 1 == len({line.split()[0] for line in (shop / "ledger.txt").read_text().splitlines()})
    assert 1 == child("tail", "--json", "--type", "activation.completed").stdout.count("shipped o")
