"""Killed from outside while a tool runs: called again, told, or UNKNOWN, by what its kind allows; and what the agent does then (S-6.5)."""

from __future__ import annotations

import pytest

from intentlog.agents import facts
from tests.acceptance.harness import end_of, folded
from tests.acceptance.kill.laws import answers_once, attempts_before_calls, effects_once, faults, inputs_once, looked_back, statuses_as_they_must_be
from tests.acceptance.kill.lives import Case, Order, case, orders_of
from tests.acceptance.kill.orders import KINDS, Orders, Paid, app


def killed_mid_tool(made: Case, effect_first: bool) -> None:
    """The first life dies while it waits for the bank's answer, with the money moved or not."""
    made.world.held["pay", "life-1"] = effect_first
    with made.start("life-1") as started:
        assert made.world.arrived.wait(30)
        made.buried("life-1", end_of(started, kill_after=0.0))
    assert made.lives[0].killed


@pytest.mark.parametrize("effect_first", [True, False], ids=["after its effect", "before its effect"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tool_that_was_running_when_the_kill_fell(kind, effect_first, tmp_path, shared_store):
    with case(shared_store, tmp_path / "case", orders_of((kind,), keys=1, each=2)) as made:
        killed_mid_tool(made, effect_first)
        (broken,) = made.left.interrupted
        made.live()
        assert [] == faults(made)
        expected = "OK" if kind == "idempotent" or (kind == "told" and effect_first) else "UNKNOWN"
        assert expected == made.left.statuses[broken]
        calls, attempts = (2, 2) if kind == "idempotent" else (1, 1)
        assert (calls, attempts) == (made.world.count("pay")[broken], made.left.attempts[broken])
        assert made.world.moved.count(broken) == (1 if effect_first or kind == "idempotent" else 0)
        assert made.world.count("look")[broken] == (1 if kind == "told" else 0)


def test_an_agent_that_takes_success_for_granted_fails_closed(tmp_path, shared_store):
    orders = [Order("anna", "one", "plain", "strict"), Order("anna", "two", "plain", "strict"), Order("ben", "three", "plain", "strict")]
    with case(shared_store, tmp_path / "case", orders[:1]) as made:
        made.live(crash="tool.called")
        made.file.write_text("".join(order.line() for order in orders), "utf-8")
        made.orders[:] = orders
        made.live()
        laws = (inputs_once, answers_once, attempts_before_calls, effects_once, statuses_as_they_must_be, looked_back)
        assert [] == [fault for law in laws for fault in law(made)]
        ((stored, failed),) = made.left.of(facts.ActivationFailed)
        assert ("strict-anna", 0, "EffectUnknown", None) == (stored.stream, failed.seq, failed.failure.type, failed.retry_at)
        states = folded(app, made.url)
        assert [0] == [parked.seq for parked in states["strict-anna"].run.parked]
        assert [("strict-anna", "two"), ("strict-ben", "three")] == sorted((stored.stream, paid.order) for stored, paid in made.left.of(Paid))
        assert {"two"} == set(states["strict-anna"].state.receipts) and isinstance(states["strict-ben"].state, Orders)
