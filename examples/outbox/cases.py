"""Seven cases, one function each: it asserts its claim and returns a line about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from intentlog.agents import facts
from intentlog.replay import Verdict, replay_all

from .shop import opened


def commit_then_dispatch() -> str:
    """The intent and the attempt are durable before the mail is called; the outcome is a fact too."""
    with opened() as shop:
        shop.confirm("in-1")
        assert [] == shop.mail.sent
        shop.run()
        (held,) = shop.mail.committed
        assert ["input.received", "intent.staged", "activation.suspended", "intent.attempted"] == held
        (settled,) = shop.facts(facts.IntentSettled)
        assert (["notify:42"], "OK", [["sent 42"]]) == (shop.mail.sent, settled.status, shop.outputs())
        return f"sent={shop.mail.sent} status={settled.status}"


def derived_again() -> str:
    """A later turn that decides the same effect gets its outcome; one that decides another under the same name is an error."""
    with opened() as shop:
        shop.confirm("in-1")
        shop.run()
        first = len(shop.mail.sent)
        shop.confirm("in-2")
        shop.run()
        again = len(shop.mail.sent) - first
        assert (1, 0, [["sent 42"]] * 2) == (first, again, shop.outputs())
        shop.confirm("in-3", total=130)
        shop.run()
        assert (["IntentConflict"], 1) == (shop.errors(), len(shop.mail.sent))
        return f"first run sent {first}; the re-run sent {again}; with another total: {shop.errors()[0]}"


def same_turn() -> str:
    """Two producers of one turn that want the same have it once; if they want different things under one name, nothing is staged at all."""
    with opened() as shop:
        shop.confirm("in-1", producers=2)
        shop.run()
        intents, sent = len(shop.facts(facts.IntentStaged)), len(shop.mail.sent)
        assert (1, 1) == (intents, sent)
    with opened() as shop:
        shop.confirm("in-1", producers=2, divergent=True)
        shop.run()
        assert (["IntentConflict"], [], []) == (shop.errors(), shop.facts(facts.IntentStaged), shop.mail.sent)
        return f"producers=2 intents={intents} sent={sent}; with two totals: {shop.errors()[0]}, nothing sent"


def two_branches() -> str:
    """Two inputs of one key that come to the same effect, with two processes at work on the log, have one delivery.

    Where histories themselves are forked and merged, the same business key will meet itself in the same way; until then the
    two branches are two turns.
    """
    with opened() as shop:
        shop.confirm("branch-a")
        shop.confirm("branch-b")
        shop.run_two()
        intents = len(shop.facts(facts.IntentStaged))
        assert (1, ["notify:42"], [["sent 42"]] * 2) == (intents, shop.mail.sent, shop.outputs())
        return f"branches=2 intents={intents} sent={len(shop.mail.sent)}"


def replayed() -> str:
    """The agent's code runs again over what is recorded; nothing in reach of it can send."""
    with opened() as shop:
        shop.confirm("in-1")
        shop.run()
        before = len(shop.mail.sent)
        (replay,) = replay_all(shop.log, shop.app)
        assert (Verdict.SAME, 1, 1) == (replay.verdict, before, len(shop.mail.sent))
        return f"sent before replay={before} after replay={len(shop.mail.sent)} verdict={replay.verdict.value}"


def failed_and_tried_again() -> str:
    """A failure is recorded and final; trying again is an effect of its own. What a crash interrupts keeps its id and its count."""
    with opened(failures=1) as shop:
        shop.confirm("in-1", tries=3)
        shop.run()
        first, second = shop.facts(facts.IntentSettled)
        assert ("ERROR", "smtp temporarily unavailable", "OK") == (first.status, first.failure.message, second.status)
        assert ["notify:42"] == shop.mail.sent
        shop.confirm("in-2")  # the same name again: the outcome it has, and nothing is armed anew
        shop.run()
        assert (2, ["notify:42"]) == (len(shop.facts(facts.IntentStaged)), shop.mail.sent)
        assert "smtp temporarily unavailable" in shop.outputs()[1][0]
    with opened() as shop:
        shop.confirm("in-1")
        shop.run("first", dies_at="tool.called")
        assert [] == shop.facts(facts.IntentSettled)
        shop.run("second")
        (settled,) = shop.facts(facts.IntentSettled)
        assert ([1, 2], 2, "OK") == ([each.attempt for each in shop.mail.intents], settled.attempts, settled.status)
        assert (1, ["notify:42"]) == (len({each.intent_id for each in shop.mail.intents}), shop.mail.sent)
        return f"raised {first.failure.message!r}; retry sent once; after a crash: attempts={settled.attempts} sent={len(shop.mail.sent)}"


def retried_by_the_tool() -> str:
    """A tool may wrap its own retries around a flaky provider; to the log that is one attempt."""
    with opened(failures=2, patience=3) as shop:
        shop.confirm("in-1")
        shop.run()
        (settled,) = shop.facts(facts.IntentSettled)
        assert (1, "OK", ["notify:42"]) == (settled.attempts, settled.status, shop.mail.sent)
        return f"transient outage absorbed by the tool: attempts={settled.attempts} sent={len(shop.mail.sent)}"


CASES: Final[dict[str, Callable[[], str]]] = {
    "commit -> dispatch": commit_then_dispatch,
    "re-derivation": derived_again,
    "same turn": same_turn,
    "two branches": two_branches,
    "replay": replayed,
    "failure -> retry": failed_and_tried_again,
    "app-owned retry": retried_by_the_tool,
}
