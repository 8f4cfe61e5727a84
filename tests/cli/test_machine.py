"""``eventlog machine``: the table as text, Mermaid and JSON, with live counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from intentlog.agents import App
from intentlog.agents.loading import load_app
from intentlog.agents.machine_drawing import counts, found_in
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.cli.conftest import call

SHOP = """
from intentlog.agents import Aggregate, App, agent, applies
from intentlog.agents.machine import StateMachine, When
from intentlog.eventlog.registry import event

@event("order.placed")
class Placed:
    cents: int

@event("order.paid")
class Paid:
    cents: int

@event("order.dropped")
class Dropped:
    why: str

def in_full(order, paid):
    return paid.cents >= order.cents

class Order(Aggregate, category="carts"):
    status: str = "new"
    cents: int = 0

    @applies(Placed)
    def _(self, e): return self.evolve(status="placed", cents=e.cents)

    @applies(Paid)
    def _(self, e): return self.evolve(status="paid in full")

    @applies(Dropped)
    def _(self, e): return self.evolve(status="dropped")

    def place(self, cents): return Placed(cents)

    machine = StateMachine(
        states=["new", "placed", "paid in full", "dropped"],
        allows={"new": {Placed: "placed"}, "placed": {Paid: When(in_full, "paid in full"), Dropped: "dropped"}},
        commands={"new": [place]},
    )

@agent("orders", state=Order)
async def orders(ctx, placed: Placed):
    ctx.do(Order.place, placed.cents)

@agent("plain")
async def plain(ctx): ...

app = App(agents=[orders, plain])
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (tmp_path / "machine_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "machine_shop", raising=False)
    call("init")
    return load_app("machine_shop:app")


def fill(app: App) -> None:
    """Three orders of the agent, facts among their events, one unreadable, and one plain cart."""
    module, new_id = sys.modules["machine_shop"], id_maker()
    from intentlog.agents import facts

    asked = facts.InputReceived("i", "", 0, "json", b"1")
    stories = {
        "orders-1": [asked, module.Placed(1)],
        "orders-2": [asked, module.Placed(1), module.Paid(1)],
        "orders-3": [asked],
        "carts-1": [module.Placed(1), module.Dropped("late")],
    }
    with_log = open_log("sqlite:///eventlog.db")
    for stream, story in stories.items():
        with_log.append(stream, [app.codec.stage(each, event_id=new_id()) for each in story], ANY)
    with_log.append("orders-4", [NewEvent(new_id(), "never.heard", 1, b"\x80")], ANY)
    with_log.close()


def test_it_is_drawn_as_text(shop):
    done = call("machine", "machine_shop:app", "orders")
    assert 0 == done.exit_code
    assert [
        "new  (initial)",
        "  order.placed → placed",
        "  commands: place",
        "placed",
        "  order.paid    → paid in full  if in_full",
        "  order.dropped → dropped",
        "paid in full  (final)",
        "dropped  (final)",
    ] == done.stdout.splitlines()


def test_it_is_drawn_as_mermaid_with_live_counts(shop):
    fill(shop)
    done = call("machine", "machine_shop:app", "orders", "--mermaid", "--log", "sqlite:///eventlog.db")
    assert [
        "stateDiagram-v2",
        '    state "new (1)" as new',
        '    state "placed (1)" as placed',
        '    state "paid in full (1)" as s2',
        '    state "dropped (0)" as dropped',
        "    [*] --> new",
        "    new --> placed : order.placed",
        "    placed --> s2 : order.paid [in_full]",
        "    placed --> dropped : order.dropped",
        "    s2 --> [*]",
        "    dropped --> [*]",
    ] == done.stdout.splitlines()


def test_counts_name_the_streams_that_cannot_be_read(shop):
    fill(shop)
    shown = json.loads(call("machine", "machine_shop:app", "orders", "--json", "--log", "sqlite:///eventlog.db").stdout)
    assert {"new": 1, "placed": 1, "paid in full": 1, "dropped": 0, "?": 1} == shown["keys"]
    assert {"from": "placed", "event": "order.paid", "to": "paid in full", "guard": "in_full"} in shown["arrows"]
    assert ({"new": ["place"]}, ["paid in full", "dropped"]) == (shown["commands"], shown["final"])
    assert "?  1  (cannot be read)" in call("machine", "machine_shop:app", "orders", "--log", "sqlite:///eventlog.db").stdout


def test_a_plain_aggregate_is_found_by_its_category(shop):
    fill(shop)
    log = open_log("sqlite:///eventlog.db")
    try:
        assert {"dropped": 1} == counts(log, shop, found_in(shop, "carts"))
    finally:
        log.close()


@pytest.mark.parametrize("name, says", [("plain", "has no state"), ("nobody", "it has: Order, carts, orders, plain")])
def test_what_has_no_machine_is_a_usage_error(shop, name, says):
    done = call("machine", "machine_shop:app", name)
    assert (2, True) == (done.exit_code, says in done.stderr), done.stderr


def test_without_a_log_nothing_is_counted(shop):
    shown = json.loads(call("machine", "machine_shop:app", "orders", "--json").stdout)
    assert "keys" not in shown
