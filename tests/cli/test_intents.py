"""``eventlog intents`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.intents import attempt_event_id, settlement_event_id
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call

CODEC = runtime_codec()
CAREFUL = """
from datetime import timedelta
from intentlog.agents import App, agent, tool
from intentlog.agents.operating import resolved_signal

@tool(side_effect=True)
def pay(cents: int) -> str:
    return f"paid {cents}"

@agent("orders")
async def orders(ctx, cents: int):
    paid = await ctx.outcome_of(ctx.act(pay, cents=cents, ttl=timedelta(hours=1)))
    if paid.status == "UNKNOWN":
        found = await ctx.signal(resolved_signal(paid.intent_id))
        return found["status"]
    return paid.status

app = App(agents=[orders])
"""


@pytest.fixture
def orders(shop: Path) -> Path:
    (shop / "careful.py").write_text(CAREFUL)
    assert 0 == call("send", "orders", "ann", "-", "5", "--id", "o-1").exit_code
    assert 0 == call("worker", "careful:app", "--until-idle").exit_code
    return shop


def the_intent() -> dict[str, object]:
    (line,) = call("intents", "list", "--all", "--json").stdout.splitlines()
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


def name() -> str:
    return str(the_intent()["id"])


def interrupted() -> None:
    """As an effector leaves it that died in mid-call, and the next one that could not tell."""
    intent = name()
    log = open_log("sqlite:///eventlog.db", create=False)
    for fact, event_id in (
        (facts.IntentAttempted(intent, 1, "e", 1), attempt_event_id(intent, 1)),
        (facts.IntentSettled(intent, "UNKNOWN", attempts=1, settled_by="e"), settlement_event_id(intent, 1)),
    ):
        log.append("orders-ann", [CODEC.stage(fact, event_id=event_id)], ANY)
    log.close()


def test_a_log_without_any_says_so(shop):
    assert (0, "Every intent has its outcome, and none is UNKNOWN.\n") == ((told := call("intents", "list")).exit_code, told.stdout)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], True),
        (["--status", "staged"], True),
        (["--status", "UNKNOWN"], False),
        (["--status", "UNKNOWN", "--status", "STAGED"], True),
        (["--tool", "pay"], True),
        (["--tool", "ship"], False),
        (["--key", "k"], False),
        (["--stream", "orders-ann"], True),
        (["--stream", "orders-bob"], False),
        (["--older-than", "0s"], True),
        (["--older-than", "2d"], False),
    ],
)
def test_the_list_shows_what_is_asked_for(orders, words, found):
    told = call("intents", "list", *words)
    assert (0, found, not found) == (told.exit_code, "STAGED" in told.stdout, "No such intent." in told.stdout)


@pytest.mark.parametrize("words", [["--older-than", "soon"], ["--older-than", "5"], ["--status", "LOST"], ["--stream", "nodash"]])
def test_a_filter_that_cannot_be_is_a_mistake_in_the_command(orders, words):
    assert 2 == call("intents", "list", *words).exit_code


def test_one_is_shown_with_what_can_be_done_about_it(orders):
    told = call("intents", "show", name()).stdout
    assert "STAGED" in told.splitlines()[0]
    assert all(each in told for each in ("orders-ann, input 0", "pay", "cents     5", "eventlog intents cancel", "eventlog intents settle"))
    assert the_intent() == json.loads(call("intents", "show", name(), "--stream", "orders-ann", "--json").stdout)


def test_what_is_not_there_is_exit_3_and_nothing_is_written(orders):
    for words in (["show"], ["retry"], ["cancel"]):
        told = call("intents", *words, "nope")
        assert (3, True) == (told.exit_code, "no intent 'nope'" in told.stderr)


def test_one_is_taken_back_and_the_agent_goes_on(orders):
    intent = name()
    told = call("intents", "cancel", intent, "--by", "ada", "--reason", "by mistake")
    assert (0, f"orders-ann  {intent} is CANCELLED\n") == (told.exit_code, told.stdout)
    assert "done before" in call("intents", "cancel", intent, "--by", "ada", "--reason", "by mistake").stdout
    found = the_intent()
    assert ("CANCELLED", "person:ada", "by mistake") == (found["status"], found["settled_by"], found["reason"])
    assert 0 == call("run", "careful:app", "--until-idle").exit_code
    assert '"CANCELLED"' in call("tail", "--json", "--type", "activation.completed").stdout
    assert 3 == call("intents", "retry", intent).exit_code


def test_a_person_says_how_an_unknown_one_ended_and_the_agent_that_waits_for_it_hears(orders):
    interrupted()
    assert 0 == call("run", "careful:app", "--until-idle").exit_code
    assert ("UNKNOWN", True) == (the_intent()["status"], "UNKNOWN" in call("intents", "list").stdout)
    again = call("intents", "retry", name())
    assert (3, True) == (again.exit_code, f"eventlog intents settle {name()}" in again.stderr)
    told = call("intents", "settle", name(), "ok", '"re_91"', "--by", "ada", "--reason", "seen there", "--json")
    assert (0, False) == (told.exit_code, json.loads(told.stdout)["duplicate"])
    resolution = the_intent()["resolution"]
    assert isinstance(resolution, dict)
    assert ("OK", "re_91", "ada", "seen there") == tuple(resolution[each] for each in ("status", "value", "by", "reason"))
    shown = call("intents", "show", name()).stdout
    assert ("UNKNOWN" in shown, "resolved  OK" in shown, "re_91" in shown) == (True, True, True)
    assert 3 == call("intents", "settle", name(), "ERROR", "--by", "bob").exit_code
    assert 0 == call("run", "careful:app", "--until-idle").exit_code
    assert '"OK"' in call("tail", "--json", "--type", "activation.completed").stdout
    assert "Every intent has its outcome" in call("intents", "list").stdout


@pytest.mark.parametrize("words", [["OK", "{"], ["MAYBE"]])
def test_an_outcome_that_cannot_be_is_a_mistake_in_the_command(orders, words):
    assert 2 == call("intents", "settle", name(), *words).exit_code


def test_an_error_has_no_value(orders):
    told = call("intents", "settle", name(), "ERROR", "5")
    assert (3, True) == (told.exit_code, "An ERROR has no value" in told.stderr)


def test_ok_needs_what_the_tool_returned_and_nothing_is_said_as_null(orders):
    told = call("intents", "settle", name(), "OK")
    assert (2, True) == (told.exit_code, "For a tool that returns nothing: OK null" in told.stderr)
    assert "STAGED" == the_intent()["status"]
    assert 0 == call("intents", "settle", name(), "OK", "null").exit_code
    assert ("OK", None) == (the_intent()["status"], the_intent()["value"])


@pytest.mark.parametrize("words", [["show"], ["cancel"], ["settle", "OK", "1"], ["retry"]])
@pytest.mark.parametrize("stream", [[], ["--stream", "orders-ann"]])
def test_six_characters_of_an_id_are_enough(orders, words, stream):
    whole = name()
    verb, *rest = words
    told = call("intents", verb, whole[:6], *rest, *stream)
    assert (3 if verb == "retry" else 0, True) == (told.exit_code, whole in told.stdout + told.stderr)
    for given in (whole[:5], whole[:6] + "!"):
        told = call("intents", verb, given, *rest, *stream)
        assert (3, True) == (told.exit_code, f"no intent {given!r}" in told.stderr)


def test_the_beginning_of_several_ids_names_none_of_them(shop):
    log, new_id = open_log("sqlite:///eventlog.db", create=False), id_maker()
    for stream, intent in (("orders-a", "abcdef-1"), ("orders-b", "abcdef-2"), ("orders-b", "abcdef-20"), ("orders-b", "abcdef")):
        log.append(stream, [CODEC.stage(facts.IntentStaged(intent, 0, 0, "pay", {}, b"d", log.clock() + 10**10), event_id=new_id())], ANY)
    log.close()
    told = call("intents", "cancel", "abcdef-")
    named = "3 intents begin with 'abcdef-': abcdef-1 of orders-a, abcdef-2 of orders-b, abcdef-20 of orders-b."
    assert (3, True) == (told.exit_code, named in told.stderr)
    assert 0 == call("intents", "cancel", "abcdef-", "--stream", "orders-a").exit_code
    for whole in ("abcdef", "abcdef-2"):  # which other ids begin with
        assert f"{whole} is CANCELLED" in call("intents", "cancel", whole).stdout
