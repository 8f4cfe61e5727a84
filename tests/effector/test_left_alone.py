"""Facts about intents that cannot be read: their keys stand still, visibly, everybody else goes on, and nothing is lost."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents.client import Client
from intentlog.agents.operating import standings
from intentlog.agents.signing import verifier
from intentlog.effector.process import Process
from intentlog.eventlog.errors import Undecodable
from tests.effector.test_signed import BOTH, Shop

KEYS = ("ann", "bob")


@pytest.fixture
def shop(tmp_path: Path) -> Any:
    """Two keys with two signed intents each, and no effector yet."""
    made = Shop(f"sqlite:///{tmp_path / 'log.db'}")
    for key in KEYS:
        Client(made.log, made.app).send("orders", key, 5, id=f"o-{key}")
    made.serve(keys=BOTH, hands=False)
    yield made
    made.log.close()


def change(shop: Shop, kind: str, to: str, value: object, stream: str = "orders-ann") -> Any:
    """The first event of that type, changed behind the log's back; what was there."""
    place = shop.events(kind, stream)[0].position
    with sqlite3.connect(shop.log.url.removeprefix("sqlite:///")) as base:
        (before,) = base.execute(f"SELECT {to} FROM events WHERE position = ?", (place,)).fetchone()
        base.execute(f"UPDATE events SET {to} = ? WHERE position = ?", (value, place))
    return before


def serve(shop: Shop, mode: str = "require") -> tuple[Process, list[str]]:
    """A worker and an effector until both have nothing left to do; and the troubles they told of."""
    told: list[str] = []

    def trouble(doing: str, problem: BaseException) -> None:
        assert isinstance(problem, Undecodable)
        told.append(f"{doing}: {problem}")

    made = Process(shop.app, shop.log, "p", keys=BOTH, verifier=verifier(mode, BOTH), on_error=trouble)
    asyncio.run(asyncio.wait_for(made.run(until_idle=True), 20))
    return made, told


def statuses(shop: Shop, key: str) -> list[str]:
    return [each.status for each in standings(shop.log, f"orders-{key}", settled=True)]


@pytest.mark.parametrize("mode", ["require", "permissive"])
def test_an_intent_whose_signature_is_damaged_is_not_authentic(shop, mode):
    change(shop, "intent.signed", "data", b"\xc1garbage")
    made, told = serve(shop, mode)
    (found,) = shop.facts("intent.distrusted")
    assert ("", b"\xc1garbage") == (found.key_id, found.signature)
    assert found.payload == shop.events("intent.staged")[0].data
    assert found.why.startswith("its signature cannot be read: orders-ann version 2: intent.signed")
    assert (["DISTRUSTED", "OK"], ["OK", "OK"]) == (statuses(shop, "ann"), statuses(shop, "bob"))
    assert (1, {}, []) == (made._effector.counts.distrusted, made.left_alone, told)


def test_where_nobody_looks_at_signatures_a_damaged_one_changes_nothing(shop):
    change(shop, "intent.signed", "data", b"\xc1garbage")
    serve(shop, "off")
    assert ["OK", "OK"] == statuses(shop, "ann")


@pytest.mark.parametrize(
    ("kind", "to", "value"),
    [("intent.staged", "schema", 2), ("intent.staged", "data", b"\x87"), ("intent.signed", "schema", 2), ("intent.staged", "data", b"")],
)
def test_a_key_with_an_intent_that_cannot_be_read_stands_still_is_told_of_once_and_goes_on_when_it_can_be_read(shop, kind, to, value):
    before = change(shop, kind, to, value)
    made, told = serve(shop)
    assert (["OK", "OK"], [5, 6]) == (statuses(shop, "bob"), shop.paid)
    assert [] == shop.events("intent.attempted")
    assert ["orders-ann"] == list(made.left_alone)
    assert (1, True) == (
        len(told),
        told[0].startswith(f"carrying out intents of orders-ann, which stands still: orders-ann version {2 if kind.endswith('signed') else 1}: "),
    )
    change(shop, kind, to, before)
    again, told = serve(shop)
    assert (["OK", "OK"], [5, 6, 5, 6], {}, []) == (statuses(shop, "ann"), shop.paid, again.left_alone, told)


@pytest.mark.parametrize("kind", ["intent.attempted", "intent.settled"])
def test_what_cannot_be_read_of_an_intent_under_way_never_lets_it_be_done_twice(shop, kind):
    """Neither a second call nor a second outcome; the checkpoint that says it is settled is taken back to show it."""
    serve(shop)
    before = change(shop, kind, "data", b"\xc1")
    with sqlite3.connect(shop.log.url.removeprefix("sqlite:///")) as base:
        base.execute("DELETE FROM checkpoints")
    made, told = serve(shop)
    assert (["orders-ann"], 1, 4) == (list(made.left_alone), len(told), len(shop.paid))
    change(shop, kind, "data", before)
    again, _ = serve(shop)
    assert ({}, 4, ["OK", "OK"]) == (again.left_alone, len(shop.paid), statuses(shop, "ann"))


def test_a_run_until_idle_that_left_a_stream_alone_claims_no_success(shop, tmp_path, monkeypatch, capfd):
    from intentlog.effector.serving import Serving
    from intentlog.eventlog.console import COULD_NOT, OK

    monkeypatch.setattr("intentlog.effector.serving.load_app", lambda name: shop.app)
    options: dict[str, Any] = {"concurrency": 4, "lease_ms": 5_000, "poll_ms": 20, "as_json": True, "crash": None, "path": None, "with_effector": True}
    serving = {"app": "x", "url": shop.log.url, "until_idle": True, "create": False, "keys": BOTH, "verify": "require", **options}
    before = change(shop, "intent.staged", "schema", 2)
    assert COULD_NOT == Serving(**serving).run()
    said = capfd.readouterr().err
    assert ["which stands still: Undecodable: orders-ann version 1", "1 stream stands still"] == [
        each for each in ("which stands still: Undecodable: orders-ann version 1", "1 stream stands still") if each in said
    ]
    change(shop, "intent.staged", "schema", before)
    assert OK == Serving(**serving).run()
