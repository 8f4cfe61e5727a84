"""Signed intents, from the worker that stages them to the effector that carries them out; and what comes of all others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import App, agent, facts, tool
from intentlog.agents.client import Client
from intentlog.agents.evolve import take
from intentlog.agents.run import RunState
from intentlog.agents.signing import KeyRing, Signature, Verifier, verifier
from intentlog.effector.choosing import UNKNOWN_TOOL, Choosing
from intentlog.effector.limits import Limits
from intentlog.effector.process import Process
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay import Verdict, replay_all
from tests.effector.test_phases import CODEC, TOOLS, pending

OLD, NEW = KeyRing({"old": bytes(32)}), KeyRing({"new": bytes(range(32))})
BOTH = KeyRing({"new": bytes(range(32)), "old": bytes(32)})
NEW_ID = id_maker()


class Shop:
    """An app of one agent with two effects, on a log."""

    def __init__(self, url: str) -> None:
        self.log: EventLog = open_log(url)
        self.paid: list[int] = []

        @tool(side_effect=True)
        def pay(cents: int) -> str:
            self.paid.append(cents)
            return f"paid {cents}"

        @agent("orders")
        async def orders(ctx: Any, cents: int) -> list[str]:
            first = ctx.act(pay, cents=cents, ttl=timedelta(hours=1))
            second = ctx.act(pay, cents=cents + 1, ttl=timedelta(hours=1))
            return [(await ctx.outcome_of(each)).status for each in (first, second)]

        self.app = App(agents=[orders], tools=[pay])

    def serve(self, *, keys: KeyRing | None = None, verifies: Verifier | None = None, hands: bool = True) -> Process:
        made = Process(self.app, self.log, "p", keys=keys, verifier=verifies, with_effector=hands)
        asyncio.run(asyncio.wait_for(made.run(until_idle=True), 20))
        return made

    def serve_worker(self, outcomes: Any, keys: KeyRing | None) -> None:
        """A worker that looks at outcomes, and no effector."""
        made = Process(self.app, self.log, "w", keys=keys, outcomes=outcomes, with_effector=False)
        asyncio.run(asyncio.wait_for(made.run(until_idle=True), 20))

    def serve_hands(self, keys: KeyRing) -> None:
        """An effector with keys, and no worker."""
        made = Process(self.app, self.log, "e", verifier=verifier("off", keys), with_worker=False)
        asyncio.run(asyncio.wait_for(made.run(until_idle=True), 20))

    def stage(self, keys: KeyRing | None) -> None:
        Client(self.log, self.app).send("orders", "ann", 5, id="o-1")
        self.serve(keys=keys, hands=False)

    def events(self, kind: str, stream: str = "orders-ann") -> list[StoredEvent]:
        return [each for each in self.log.read(stream) if each.type == kind]

    def facts(self, kind: str, stream: str = "orders-ann") -> list[Any]:
        return [self.app.codec.decode_stored(each) for each in self.events(kind, stream)]

    def replays(self) -> bool:
        """Whether the code decides the same again."""
        return [Verdict.SAME] == [each.verdict for each in replay_all(self.log, self.app)]

    def copy(self, events: list[StoredEvent], stream: str, change: Callable[[Any], Any] = lambda fact: fact) -> None:
        """The facts of ``events`` written again, as somebody would who may write to the log and has no key."""
        again = [self.app.codec.stage(change(self.app.codec.decode_stored(each)), event_id=NEW_ID()) for each in events]
        self.log.append(stream, again, ANY)


@pytest.fixture
def shop() -> Any:
    made = Shop("memory://")
    yield made
    made.log.close()


def test_without_keys_nothing_more_is_written(shop):
    shop.stage(None)
    shop.serve()
    assert ([], [5, 6]) == (shop.events("intent.signed"), shop.paid)


def test_each_intent_is_signed_behind_it_in_the_same_append_and_carried_out(shop):
    shop.stage(OLD)
    kinds = [each.type for each in shop.log.read("orders-ann")]
    assert ["input.received", *["intent.staged", "intent.signed"] * 2, "activation.suspended"] == kinds
    for staged, signed in zip(shop.events("intent.staged"), shop.facts("intent.signed"), strict=True):
        assert OLD.verify_intent(Signature(signed.key_id, signed.signature), "orders-ann", staged.schema, staged.data) is None
    shop.serve(keys=OLD, verifies=verifier("require", OLD))
    assert ([5, 6], ["OK", "OK"]) == (shop.paid, [each.status for each in shop.facts("intent.settled")])
    assert [["OK", "OK"]] == [each.output for each in shop.facts("activation.completed")]


def test_a_signed_history_replays_without_any_key(shop):
    shop.stage(OLD)
    shop.serve(keys=NEW)
    assert shop.replays()


def test_keys_are_rotated_with_intents_under_way(shop):
    shop.stage(OLD)
    shop.serve(keys=NEW, verifies=verifier("require", BOTH))
    assert [5, 6] == shop.paid


UNSIGNED: dict[str, tuple[KeyRing | None, KeyRing, str]] = {
    "unsigned": (None, NEW, "it is not signed"),
    "signed with a retired key": (OLD, NEW, "the key 'old', which is not in the ring"),
    "signed with another secret under this id": (KeyRing({"new": bytes(40)}), NEW, "not one of these bytes"),
}


@pytest.mark.parametrize("case", UNSIGNED)
def test_what_is_not_authentic_drives_nothing_and_is_set_aside_with_its_bytes(shop, case):
    signs, verifies, why = UNSIGNED[case]
    shop.stage(signs)
    process = shop.serve(verifies=verifier("require", verifies))
    assert ([], [], []) == (shop.paid, shop.events("intent.attempted"), shop.events("intent.settled"))
    found = shop.facts("intent.distrusted")
    assert (2, 2) == (len(found), process._effector.counts.distrusted)
    assert all(why in each.why for each in found)
    assert [(each.schema, each.data) for each in shop.events("intent.staged")] == [(each.schema, each.payload) for each in found]
    last = shop.log.last_position()
    shop.serve(verifies=verifier("require", verifies))
    assert ([], last) == (shop.paid, shop.log.last_position())  # it is looked at once


def test_permissive_takes_what_is_unsigned_and_refuses_what_is_signed_wrongly(shop):
    shop.stage(None)
    shop.serve(verifies=verifier("permissive", NEW))
    assert [5, 6] == shop.paid
    Client(shop.log, shop.app).send("orders", "bob", 7, id="o-2")
    shop.serve(keys=OLD, hands=False)
    shop.serve(verifies=verifier("permissive", NEW))
    assert ([5, 6], 2) == (shop.paid, len(shop.facts("intent.distrusted", "orders-bob")))


def test_an_expired_intent_that_is_not_authentic_is_not_even_reported_expired(shop):
    shop.stage(None)
    shop.copy(shop.events("intent.staged"), "orders-eve", lambda fact: facts.IntentStaged("z", 0, fact.step, fact.tool, fact.args, fact.digest, 0))
    shop.serve(verifies=verifier("require", NEW))
    assert ([], []) == (shop.paid, shop.events("intent.settled", "orders-eve"))


def test_a_signature_is_of_no_use_on_another_stream_or_for_another_intent(shop):
    shop.stage(NEW)
    shop.serve(keys=NEW, verifies=verifier("require", NEW))
    pairs = [each for each in shop.log.read("orders-ann") if each.type in ("intent.staged", "intent.signed")]
    shop.copy(pairs, "orders-eve")  # replayed
    staged, signed = shop.events("intent.staged")[0], shop.facts("intent.signed")[0]
    forged = facts.IntentStaged("forged", 0, 0, "pay", {"cents": 1_000_000}, b"", 2**50)
    for fact in (forged, facts.IntentSigned("forged", signed.key_id, signed.signature)):
        shop.log.append("orders-eve", [shop.app.codec.stage(fact, event_id=NEW_ID())], ANY)
    shop.serve(keys=NEW, verifies=verifier("require", NEW))
    assert ([5, 6], []) == (shop.paid, shop.events("intent.settled", "orders-eve"))
    assert 3 == len(shop.facts("intent.distrusted", "orders-eve"))
    assert staged.data == shop.facts("intent.distrusted", "orders-eve")[0].payload


def test_an_intent_that_is_forged_elsewhere_under_the_id_of_one_under_way_changes_nothing_about_that(shop):
    shop.stage(NEW)
    shop.copy(shop.events("intent.staged"), "orders-eve")
    shop.serve(keys=NEW, verifies=verifier("require", NEW))
    assert ([5, 6], 2) == (shop.paid, len(shop.facts("intent.distrusted", "orders-eve")))
    assert ([1, 1], ["OK", "OK"]) == ([each.attempt for each in shop.facts("intent.attempted")], [each.status for each in shop.facts("intent.settled")])
    assert [["OK", "OK"]] == [each.output for each in shop.facts("activation.completed")]


def test_what_was_set_aside_leaves_its_run_as_it_was(shop):
    shop.stage(None)
    shop.serve(verifies=verifier("require", NEW))
    run = RunState()
    for each in shop.log.read("orders-ann"):
        run.at = each.version
        take(run, shop.app.codec.decode_stored(each), each.recorded_at)
    assert [None, None] == [each.settled for each in run.intents.values()]
    assert shop.replays()


@pytest.mark.parametrize("name, args", [("tomorrow", {"text": "x"}), ("push", {"text": 7})], ids=["an unknown tool", "arguments that do not fit"])
def test_what_is_not_authentic_is_not_held_for_an_effector_that_knows_its_tool(name, args):
    """Else whoever may write to the log could stop a key until the deadline he gives."""
    waiting = pending(name, expires_at=100, **args)
    waiting.data = b"as it was staged"
    for keys, kept in ((OLD, UNKNOWN_TOOL), (NEW, "")):
        waiting.signature = keys.sign_intent(waiting.stream, waiting.schema, waiting.data)
        choosing = Choosing(TOOLS, lambda: 50, Limits(), CODEC, hold_unknown=True, verifier=verifier("require", OLD))
        assert kept == choosing.obstacle(waiting)
