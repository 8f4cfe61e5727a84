"""A fork and its source side by side: what workers, effectors and people do to either, and what was begun by it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from intentlog.agents import ActivationContext, facts
from intentlog.agents.appends import EFFECTS, TURNS
from intentlog.agents.intents import attempt_event_id, settlement_event_id
from intentlog.eventlog.errors import LogError
from intentlog.eventlog.log import Claim, Wake
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import live_name, write_live
from intentlog.replay.verify import verify_all
from tests.replay.world import STREAM, Account, RefundAsked, World, refund

FORK = f"{STREAM}~fork1"


async def paying_twice(ctx: ActivationContext[Account], asked: RefundAsked) -> Any:
    """Two effects, one after the other."""
    first = await ctx.perform(refund, order_id=asked.order_id, cents=asked.cents)
    second = await ctx.perform(refund, order_id=first, cents=1)
    return [first, second]


def forked(world: World, app: Any, at: int = 0) -> None:
    """A live fork at ``at`` of a stream that has its input only, beside the source."""
    if world.log.head(STREAM) < 0:
        world.send(app, RefundAsked("o-1", 4200))
    fork = what_if(world.log, app, STREAM, at, approvals=False)
    write_live(fork, app, world.log, live_name(world.log, STREAM), source_log="memory://", by="ann")


def intents(world: World, app: Any, stream: str) -> dict[str, list[Any]]:
    """Open intents of a stream: id → what befell it."""
    found: dict[str, list[Any]] = {}
    for stored in world.log.read(stream):
        fact = app.codec.decode_stored(stored)
        if hasattr(fact, "intent_id"):
            found.setdefault(fact.intent_id, []).append(fact)
    return found


def open_intent(world: World, app: Any, stream: str) -> tuple[str, int] | None:
    for intent_id, befell in intents(world, app, stream).items():
        if not any(isinstance(fact, facts.IntentSettled) for fact in befell):
            return intent_id, sum(isinstance(fact, facts.IntentAttempted) for fact in befell)
    return None


#: Effects that were begun, by what they are: (seq, step) of their intents.
Begun = Counter[tuple[int, int]]


def append(world: World, app: Any, stream: str, fact: Any, event_id: bytes) -> bool:
    """As an effector would, under the stream's lease; whether the store took it."""
    now = world.clock()
    token = world.log.schedule.acquire(EFFECTS, [stream], "e", now=now, until=now + 1).get(stream)
    if token is None:
        return False
    world.log.schedule.release([Claim(EFFECTS, stream, token, None)])
    try:
        world.log.append(stream, [app.codec.stage(fact, event_id=event_id)], ANY, wakes=[Wake(TURNS, world.clock(), sooner=True)])
    except LogError:
        return False
    return True


def attempt(world: World, app: Any, stream: str) -> bool:
    found = open_intent(world, app, stream)
    if found is None or found[1]:
        return False
    return append(world, app, stream, facts.IntentAttempted(found[0], 1, "e", 1), attempt_event_id(found[0], 1))


def settle(world: World, app: Any, stream: str, status: str = "OK", value: Any = "re_1") -> bool:
    """Attempted and settled; whether there was anything open."""
    attempt(world, app, stream)
    found = open_intent(world, app, stream)
    if found is None:
        return False
    return append(world, app, stream, facts.IntentSettled(found[0], status, value, attempts=1, settled_by="e"), settlement_event_id(found[0], 1))


def cancel(world: World, app: Any, stream: str) -> bool:
    found = open_intent(world, app, stream)
    if found is None or found[1]:
        return False
    return append(world, app, stream, facts.IntentSettled(found[0], "CANCELLED", settled_by="bob"), settlement_event_id(found[0], 0))


def turn(world: World, app: Any) -> None:
    """Every turn that is due, on both sides."""
    world.run(app, effector=False)


def merged(world: World, app: Any) -> Any:
    plan = plan_merge(world.log, world.log, app, FORK)
    if not plan.plan.conflicts:
        carry_out(plan, world.log, world.log, app, by="ann")
    return plan.plan


def sound(world: World, app: Any) -> None:
    for stream in (STREAM, FORK):
        assert (Verdict.SAME, "") == ((found := replay_stream(world.log, app, stream)).verdict, found.reason or str(found.divergence or ""))
    assert [] == [report.faults for report in verify_all(world.log, app, [STREAM, FORK]) if not report.sound]


def effect(world: World, app: Any, stream: str, what: str) -> Begun:
    """Do it, and say which effect was begun by that."""
    found = open_intent(world, app, stream)
    if what == "cancel":
        cancel(world, app, stream)
    elif found is not None and not found[1]:
        began = attempt(world, app, stream)
        if what == "settle":
            settle(world, app, stream)
        staged = next(fact for fact in intents(world, app, stream)[found[0]] if isinstance(fact, facts.IntentStaged))
        return Begun({(staged.seq, staged.step): int(began)})
    elif what == "settle":
        settle(world, app, stream)
    return Begun()
