"""Signals, cancellations, approvals and figures at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import call

DESK = """
from datetime import timedelta
from intentlog.agents import App, RetryPolicy, agent

@agent("desk", retry=RetryPolicy(max_attempts=1))
async def desk(ctx, what: str):
    if what == "ask":
        verdict = await ctx.approval("Pay\\x1b[31m it?", channel="support", timeout=timedelta(hours=1), cents=42)
        return verdict.approved
    if what == "fail":
        raise ValueError("no")
    if what == "quick":
        return what
    return await ctx.signal("go")

app = App(agents=[desk])
"""


@pytest.fixture
def desk(shop: Path) -> Path:
    (shop / "desk.py").write_text(DESK)
    return shop


def serve() -> None:
    done = call("run", "desk:app", "--until-idle")
    assert 0 == done.exit_code, done.stderr


def tell(key: str, what: str) -> None:
    assert 0 == call("send", "desk", key, "-", json.dumps(what), "--id", f"{key}-{what}").exit_code


def outputs(stream: str) -> list[object]:
    lines = call("tail", "--json", "--type", "activation.completed").stdout.splitlines()
    return [json.loads(line) for line in lines if json.loads(line)["stream"] == stream]


def test_a_signal_is_told_once_and_the_run_goes_on(desk):
    tell("bob", "wait")
    serve()
    assert "done before" not in call("signal", "desk", "bob", "go", '{"n": 1}', "--id", "s").stdout
    assert "done before: nothing was written" in call("signal", "desk", "bob", "go", '{"n": 1}', "--id", "s").stdout
    other = call("signal", "desk", "bob", "go", "2", "--id", "s")
    assert (3, True) == (other.exit_code, "used on desk-bob before" in other.stderr)
    serve()
    assert 1 == len(outputs("desk-bob"))


def test_a_signal_that_is_no_json_is_a_usage_error(desk):
    done = call("signal", "desk", "bob", "go", "hello")
    assert (2, True) == (done.exit_code, "needs its JSON quotes" in done.stderr)


def test_a_run_is_cancelled_by_name_and_then_nothing_is_left_to_cancel(desk):
    tell("bob", "wait")
    serve()
    done = json.loads(call("cancel", "desk", "bob", "--by", "ada", "--reason", "a mistake", "--json").stdout)
    assert {"stream": "desk-bob", "seq": 0, "id": "bob-wait", "duplicate": False} == done
    assert "done before" in call("cancel", "desk", "bob", "--seq", "0").stdout
    serve()
    over = call("cancel", "desk", "bob")
    assert (3, True) == (over.exit_code, "no open activation" in over.stderr)
    assert "completed" in call("streams", "desk-bob").stdout


def test_a_question_is_listed_shown_and_answered_once(desk):
    assert "Nothing waits for a person." in call("approvals", "list").stdout
    tell("bob", "ask")
    serve()
    assert "\x1b" not in call("approvals", "list").stdout
    (asked,) = map(json.loads, call("approvals", "list", "--channel", "support", "--json").stdout.splitlines())
    assert ("desk-bob", {"cents": 42}) == (asked["stream"], asked["details"])
    shown = call("approvals", "show", "desk-bob").stdout
    assert (len(asked["digest"]), asked["digest"] in shown) == (64, True)
    assert "cents     42" in shown
    assert f"eventlog approvals approve desk-bob {asked['id']}" in shown
    assert "is approved by ada" in call("approvals", "approve", "desk-bob", asked["id"], "--digest", asked["digest"], "--by", "ada").stdout
    second = call("approvals", "deny", "desk-bob", asked["id"], "--by", "bob")
    assert (3, True) == (second.exit_code, "was approved by ada already" in second.stderr)
    serve()
    assert 3 == call("approvals", "show", "desk-bob").exit_code


def test_an_unknown_approval_says_where_to_look(desk):
    tell("bob", "ask")
    serve()
    done = call("approvals", "deny", "desk-bob", "approval-7-7")
    assert (3, True) == (done.exit_code, "eventlog approvals list" in done.stderr)


def test_the_figures_count_what_is_there(desk):
    assert "0 streams, 0 events" in call("stats").stdout
    tell("bob", "wait")
    tell("eve", "fail")
    tell("kim", "quick")
    serve()
    found = json.loads(call("stats", "--json").stdout)
    (agent,) = found["agents"]
    assert {"agent": "desk", "streams": 3, "open": 1, "suspended": 1, "parked": 1, "blocked": 0} == {name: agent[name] for name in agent if name != "events"}
    assert ["desk-bob", "desk-eve", "desk-kim"] == sorted(each["stream"] for each in found["longest"])
    assert found["events"] == sum(each["events"] for each in found["longest"])
    assert 1 == json.loads(call("stats", "desk-k", "--json").stdout)["streams"]


def test_a_long_history_of_an_open_activation_is_marked(desk):
    tell("bob", "wait")
    tell("kim", "quick")
    serve()
    marked = {each["stream"]: each["warned"] for each in json.loads(call("stats", "--warn-history", "1", "--json").stdout)["longest"]}
    assert {"desk-bob": True, "desk-kim": False} == marked
    assert "! goes on afresh" in call("stats", "--warn-history", "1").stdout
    assert "!" not in call("stats").stdout
