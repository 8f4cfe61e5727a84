"""One event that cannot be read hides nothing but itself: every list shows all others, names it with place and reason, and ends with 1."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.agents.operating import standing, standings
from intentlog.eventlog.errors import NewerSchema
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call

URL = "sqlite:///eventlog.db"
ANN, BOB = "orders-ann", "orders-bob"
DESK = """
from datetime import timedelta
from intentlog.agents import App, agent

@agent("desk")
async def desk(ctx, text: str):
    return (await ctx.approval(text, timeout=timedelta(hours=4))).approved

app = App(agents=[desk])
"""
CODEC, NEW_ID = runtime_codec(), id_maker()


@pytest.fixture
def two(shop: Path) -> Path:
    """Two keys with one intent each that nobody attempted."""
    for key in ("ann", "bob"):
        assert 0 == call("send", "orders", key, "order.placed", '{"order_id": "o"}', "--id", f"o-{key}").exit_code
    assert 0 == call("worker", "shop:app", "--until-idle").exit_code
    return shop


def damage(kind: str, to: str = "schema", value: object = 9, stream: str = ANN) -> tuple[int, int]:
    """Version and position of the first such event, which is no longer to be read."""
    with sqlite3.connect("eventlog.db") as base:
        where = "type = ? AND stream_id = (SELECT id FROM streams WHERE name = ?)"
        version, position = base.execute(f"SELECT version, position FROM events WHERE {where} ORDER BY position", (kind, stream)).fetchone()
        base.execute(f"UPDATE events SET {to} = ? WHERE position = ?", (value, position))
    return int(version), int(position)


def rows(*words: str, code: int = 1) -> list[dict[str, Any]]:
    done = call(*words, "--json")
    assert code == done.exit_code, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def write(stream: str, *told: object) -> None:
    log = open_log(URL)
    log.append(stream, [CODEC.stage(fact, event_id=NEW_ID()) for fact in told], ANY)
    log.close()


@pytest.mark.parametrize(("to", "value", "why"), [("schema", 9, "was written under schema version 9"), ("data", b"\x87", "not one MessagePack value")])
@pytest.mark.parametrize("words", [(), ("--all",), ("--status", "STAGED"), ("--tool", "ship")])
def test_intents_that_can_be_read_are_listed_and_the_one_that_cannot_has_a_row_of_its_own(two, words, to, value, why):
    version, position = damage("intent.staged", to, value)
    good, bad = rows("intents", "list", *words)
    assert (BOB, "STAGED", "ship") == (good["stream"], good["status"], good["tool"])
    assert (ANN, version, position, "intent.staged", "UNREADABLE") == tuple(bad[name] for name in ("stream", "version", "position", "type", "status"))
    assert why in bad["why"]
    done = call("intents", "list", *words)
    assert (1, True, True) == (done.exit_code, BOB in done.stdout, f"(version {version})" in done.stdout)
    assert why in done.stdout
    assert [BOB] == [each["stream"] for each in rows("intents", "list", *words, "--stream", BOB, code=0)]


@pytest.mark.parametrize("kind", ["intent.attempted", "intent.settled"])
def test_an_intent_of_which_not_all_can_be_read_says_so_and_nobody_acts_on_it(two, kind):
    assert 0 == call("run", "shop:app", "--until-idle").exit_code
    (found,) = rows("intents", "list", "--all", "--stream", ANN, code=0)
    version, _ = damage(kind)
    shown = call("intents", "show", found["id"])
    assert (1, True, True) == (shown.exit_code, f"version {version}: {kind} was written" in shown.stdout, f"eventlog raw {ANN} {version}" in shown.stdout)
    assert [version] == [each["version"] for each in rows("intents", "show", found["id"])[0]["unreadable"]]
    before = call("tail", "--json").stdout
    for change in (("cancel",), ("settle", "ERROR"), ("retry",)):
        done = call("intents", change[0], found["id"], *change[1:])
        assert (3, True) == (done.exit_code, f"{ANN} version {version}: {kind} was written" in done.stderr)
    assert before == call("tail", "--json").stdout


def test_an_intent_is_found_by_how_its_id_begins_although_another_cannot_be_read(two):
    (found,) = rows("intents", "list", "--stream", BOB, code=0)
    damage("intent.staged")
    assert found["id"] == rows("intents", "show", found["id"][:6], code=0)[0]["id"]
    assert found["id"] == rows("intents", "show", found["id"], code=0)[0]["id"]
    assert 0 == call("intents", "cancel", found["id"]).exit_code
    assert 3 == call("intents", "show", "nobody").exit_code


DAMAGED: dict[str, Callable[[], tuple[int, int]]] = {
    "staged": lambda: damage("intent.staged"),
    "newer signature": lambda: damage("intent.signed"),
    "failed": lambda: damage("activation.failed", "data", b""),
    "redriven": lambda: damage("input.redriven"),
    "question": lambda: damage("approval.requested"),
}


@pytest.mark.parametrize("which", DAMAGED)
def test_dead_letters_that_can_be_read_are_listed_and_the_event_that_cannot_is_one_of_them(two, which):
    failed = facts.ActivationFailed(0, "o", 1, facts.Failure("E", "m"), 0, 0, None)
    write(ANN, facts.IntentSigned("x", "k", b"s"), failed, facts.InputRedriven(0, "o", "ada", "mended"))
    write(ANN, facts.ApprovalRequested("approval-0-0", 0, 0, "Pay?", "desk", {}, b"d" * 32, 2**60))
    write(BOB, failed)
    version, position = DAMAGED[which]()
    found = {each["kind"]: each for each in rows("dead-letters", "list") if each["stream"] == BOB or each["kind"] == "unreadable"}
    assert ({"parked", "unreadable"}, BOB) == (set(found), found["parked"]["stream"])
    bad = found["unreadable"]
    assert (ANN, version, position) == (bad["stream"], bad["version"], bad["position"])
    listed = call("dead-letters", "list", "--status", "unreadable")
    assert (1, True, True) == (listed.exit_code, f"version {version}" in listed.stdout, bad["why"] in listed.stdout)
    assert [BOB] == [each["stream"] for each in rows("dead-letters", "list", "--key", "bob", code=0)]


def test_a_damaged_signature_of_an_intent_that_is_over_is_no_dead_letter(two):
    write(ANN, facts.IntentSigned("x", "k", b"s"))
    damage("intent.signed", "data", b"\xc1")
    assert [] == rows("dead-letters", "list", code=0)


def test_an_event_that_cannot_be_read_is_shown_with_what_helps_and_a_redrive_names_it(two):
    version, _ = damage("intent.staged")
    shown = call("dead-letters", "show", ANN)
    assert (0, True, True) == (shown.exit_code, "schema version 9" in shown.stdout, f"eventlog raw {ANN} {version}" in shown.stdout)
    (told,) = rows("dead-letters", "show", ANN, code=0)
    assert ("unreadable", version) == (told["kind"], told["version"])
    done = call("dead-letters", "redrive", ANN)
    assert (3, True) == (done.exit_code, f"version {version}, which cannot be read: eventlog raw {ANN} {version}" in done.stderr)
    assert 1 == call("raw", ANN, str(version), "--app", "shop:app").exit_code


def test_an_event_that_its_stream_is_blocked_at_is_listed_once(two):
    version, _ = damage("intent.staged")
    write(ANN, facts.StreamBlocked(version, facts.Failure("NewerSchema", "newer")))
    assert [("blocked", version)] == [(each["kind"], each["at_version"]) for each in rows("dead-letters", "list", code=0)]


def test_questions_that_can_be_read_are_listed_and_a_stream_that_cannot_be_read_is_named(shop, monkeypatch):
    monkeypatch.delitem(sys.modules, "questions", raising=False)
    (shop / "questions.py").write_text(DESK)
    for key in ("ann", "bob", "cy"):
        assert 0 == call("send", "desk", key, "-", '"Pay?"', "--id", f"d-{key}").exit_code
    assert 0 == call("worker", "questions:app", "--until-idle").exit_code
    first, _ = damage("approval.requested", stream="desk-ann")
    second, _ = damage("activation.suspended", stream="desk-cy")
    found = rows("approvals", "list")
    assert [("desk-bob", None), ("desk-ann", first), ("desk-cy", second)] == [(each["stream"], each.get("version")) for each in found]
    assert [None, True, True] == [each.get("unreadable") for each in found]
    listed = call("approvals", "list")
    assert (1, [True] * 3) == (listed.exit_code, [each in listed.stdout for each in ("desk-bob", f"(version {first})", f"(version {second})")])
    assert 0 == call("stats").exit_code == call("streams").exit_code == call("stats", "--events").exit_code


def test_code_that_asks_without_saying_what_to_do_about_it_gets_the_error(two):
    damage("intent.staged")
    log = open_log(URL)
    with pytest.raises(NewerSchema, match=f"{ANN} version"):
        standings(log)
    with pytest.raises(NewerSchema, match=f"{ANN} version"):
        standing(log, "x", ANN)
    log.close()
