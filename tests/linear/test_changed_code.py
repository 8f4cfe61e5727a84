"""Code that changes under a suspended run: found out live and by replay, naming step, recorded and decided; or guarded (S-4.2, S-7.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import pytest

from intentlog.agents import facts
from intentlog.agents.lifecycle import ActivationState
from intentlog.replay import Verdict, replay_stream
from tests.agents.world import STREAM, Asked, Ctx, Paid, World
from tests.linear.common import decide, signal, sound

Step: TypeAlias = Callable[[Ctx], Awaitable[Any]]
SECOND = timedelta(seconds=1)


def push(text: str) -> Step:
    return lambda ctx: ctx.perform("push", text=text)


def pay(order: str) -> Step:
    return lambda ctx: ctx.perform("pay", order=order)


def sleep(seconds: float) -> Step:
    return lambda ctx: ctx.sleep(seconds * SECOND)


def ask(prompt: str) -> Step:
    return lambda ctx: ctx.call_model(prompt)


def read(what: str) -> Step:
    return lambda ctx: ctx.run_tool("read", what=what)


def wait(name: str) -> Step:
    return lambda ctx: ctx.signal(name)


def approve(question: str) -> Step:
    return lambda ctx: ctx.approval(question)


def emit(event: object) -> Step:
    async def step(ctx: Ctx) -> None:
        ctx.emit(event)

    return step


def send(key: str, word: str) -> Step:
    async def step(ctx: Ctx) -> None:
        ctx.send("a", key, word)

    return step


def both(*steps: Step) -> Step:
    return lambda ctx: ctx.gather(*(step(ctx) for step in steps))


def agent_of(*steps: Step) -> Any:
    async def code(ctx: Ctx, given: Any) -> Any:
        if ctx.key == "k":
            for step in steps:
                await step(ctx)

    return code


@attrs.frozen
class Change:
    name: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]
    #: Type of the failure, and what its text and the replay's divergence say.
    fault: str
    said: tuple[str, ...] = ()
    step: int = -1


OUT = wait("end")
CHANGES = [
    Change("an argument", (push("a"), OUT), (push("b"), OUT), "IntentDrift", ("step 0 (push)", "'a'", "'b'", "text"), 0),
    Change("a tool", (push("a"), OUT), (pay("a"), OUT), "IntentDrift", ("step 0 (pay)", "push", "pay"), 0),
    Change("an effect inserted before", (push("a"), OUT), (push("z"), push("a"), OUT), "IntentDrift", ("step 0 (push)",), 0),
    Change("an effect inserted between", (push("a"), push("b"), OUT), (push("a"), push("z"), push("b"), OUT), "IntentDrift", ("step 1 (push)",), 1),
    Change("an effect removed", (push("a"), push("b"), OUT), (push("b"), OUT), "IntentDrift", ("step 0 (push)",), 0),
    Change("the end removed", (push("a"), OUT), (push("a"),), "StepDrift", ("turn 1", "signal-0-1-end", "the activation ends")),
    Change("two effects reordered", (push("a"), push("b"), OUT), (push("b"), push("a"), OUT), "IntentDrift", ("step 0 (push)",), 0),
    Change("two reordered beside each other", (both(push("a"), pay("b")), OUT), (both(pay("b"), push("a")), OUT), "IntentDrift", ("step 0 (pay)",), 0),
    Change("a sleep for an effect", (sleep(1), OUT), (push("a"), OUT), "StepDrift", ("step 0", "timer for", "intent push"), 0),
    Change("an effect for a sleep", (push("a"), OUT), (sleep(1), OUT), "StepDrift", ("step 0", "intent push", "timer sleep"), 0),
    Change("a longer sleep", (sleep(1), OUT), (sleep(2), OUT), "StepDrift", ("step 0 (timer)", "09:14:01", "09:14:02", "fires_at"), 0),
    Change(
        "a sleep inserted before a read of the model", (ask("a"), OUT), (sleep(1), ask("a"), OUT), "StepDrift", ("step 0", "a model call (model-x)", "timer"), 0
    ),
    Change("a prompt", (ask("a"), OUT), (ask("b"), OUT), "ModelDrift", ("step 0 (model call)", "'a'", "'b'"), 0),
    Change("a prompt removed", (ask("a"), OUT), (OUT,), "StepDrift", ("step 0", "a model call (model-x)", "signal end"), 0),
    Change("a prompt inserted", (OUT, OUT), (ask("a"), OUT, OUT), "StepDrift", ("step 0", "signal end", "model call"), 0),
    Change("a read", (read("a"), OUT), (read("b"), OUT), "ToolDrift", ("read 0 (read)", "'a'", "'b'")),
    Change("a read removed", (read("a"), OUT), (OUT,), "StepDrift", ("turn 0", "1 reads", "0 reads", "reads")),
    Change("a signal's name", (wait("end"), OUT), (wait("go"), OUT), "StepDrift", ("turn 0", "signal-0-0-end", "signal-0-0-go", "waits")),
    Change("a question", (approve("Pay?"), OUT), (approve("Pay more?"), OUT), "StepDrift", ("step 0 (approval)", "Pay?", "Pay more?", "question"), 0),
    Change("an approval for a signal", (approve("Pay?"), OUT), (wait("end"), OUT), "StepDrift", ("step 0", "approval 'Pay?'", "signal end"), 0),
    Change("an event", (emit(Paid("a")), OUT), (emit(Paid("b")), OUT), "StepDrift", ("event 0", "'a'", "'b'", "receipt")),
    Change("an event's type", (emit(Paid("a")), OUT), (emit(Asked("a")), OUT), "StepDrift", ("event 0", "order.paid", "order.asked", "type")),
    Change("an event removed", (emit(Paid("a")), OUT), (OUT,), "StepDrift", ("turn 0", "1 events", "0 events")),
    Change("an event inserted", (OUT, OUT), (emit(Paid("a")), OUT, OUT), "StepDrift", ("turn 0", "0 events", "1 events")),
    Change("what is sent", (send("x", "a"), OUT), (send("x", "b"), OUT), "StepDrift", ("step 0 (send)", "digest"), 0),
    Change("whom it is sent to", (send("x", "a"), OUT), (send("y", "a"), OUT), "StepDrift", ("step 0 (send)", "a-x", "a-y"), 0),
]


def answer(world: World) -> None:
    """Say yes when it waits for that."""
    last = world.facts()[-1]
    if isinstance(last, facts.Suspended) and last.waits[0].startswith("approval-"):
        decide(world, True)


def suspended(change: Change, **options: Any) -> World:
    """A run that waits at the end of the old code."""
    world = World(agent_of(*change.before), **options)
    world.send()
    for _ in range(3):
        world.run()
        answer(world)
        world.clock.tick(1)
    world.run()
    assert [] == world.failures()
    return world


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_is_found_out_live(change: Change):
    with suspended(change) as world:
        world.deploy(agent_of(*change.after))
        calls = list(world.hands.calls)
        signal(world, "end")
        world.run()
        (failure,) = world.failures()
        assert change.fault == failure.type
        assert all(each in failure.message for each in change.said), failure.message
        assert ActivationState.PARKED is next(iter(world.fold().run.open.values())).state
        assert calls == world.hands.calls


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_is_found_by_replay(change: Change):
    with suspended(change) as world:
        world.deploy(agent_of(*change.after))
        replayed = replay_stream(world.log, world.app, STREAM)
        assert (Verdict.DIVERGED, True) == (replayed.verdict, replayed.divergence is not None), replayed.reason
        found = replayed.divergence
        assert found is not None
        assert found.recorded != found.decided
        assert change.step in (-1, found.step)


@pytest.mark.parametrize("change", [each for each in CHANGES if each.fault != "ToolDrift"], ids=lambda change: change.name)
@pytest.mark.parametrize("guard", ["patched", "version"])
def test_a_guarded_change_leaves_old_runs_on_the_old_path(change: Change, guard: str):
    async def code(ctx: Ctx, given: Any) -> Any:
        if ctx.key != "k":
            return None
        new = ctx.patched("better") if guard == "patched" else ctx.version >= 2
        await agent_of(*(change.after if new else change.before))(ctx, given)
        return "new" if new else "old"

    with suspended(change) as world:
        world.deploy(code, version=2)
        assert [] == sound(world)
        signal(world, "end")
        world.run()
        for number in range(3):
            signal(world, "end", id=f"s-{number + 5}")
            world.run()
        assert ["old"] == world.outputs()
        world.send()
        for number in range(6):
            signal(world, "end" if number % 2 else "go", id=f"s-{number + 10}")
            world.run()
            answer(world)
            world.clock.tick(2)
        world.run()
        assert ["old", "new"] == world.outputs()
        assert [] == sound(world)
        world.deploy(code, version=3)
        assert [] == sound(world)


def test_a_change_beyond_where_the_run_waits_is_no_change_to_it():
    with suspended(Change("", (push("a"), OUT, push("b")), (), "")) as world:
        world.deploy(agent_of(push("a"), OUT, push("c"), pay("d")))
        signal(world, "end")
        world.run()
        assert [("push", "a"), ("push", "c"), ("pay", "d")] == world.hands.calls
        assert [] == world.failures()
