"""Orders in three processes, over a server that crashes twenty times: each is charged, sent and told of once, and none is forgotten.

``CHAOS_CRASHES`` and ``CHAOS_SEED`` choose how many crashes and which moments; the seed of a run is printed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import attrs
import pytest

from examples.orders import agent
from examples.orders.agent import OrderPlaced
from examples.orders.servers import EFFECTS, Ledger, servers
from intentlog.agents.client import Client
from intentlog.eventlog import EventLog
from tests.acceptance.harness import decoded, folded, journalled_keys, not_the_same
from tests.acceptance.orders_patient import app, hours
from tests.eventlog.postgres.chaos.crashing import WORKERS, Crashes, patiently, working
from tests.eventlog.postgres_reading.helping import until

CRASHES = int(os.environ.get("CHAOS_CRASHES", "20"))
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
#: Seconds; an order sleeps for two of these.
DAY = 1.0
#: Cents of one that a person is asked about, and of one that nobody is.
RISKY, SMALL = 250_000, 500

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def short_days() -> Iterator[None]:
    """The code runs here too, when it is replayed, and its days must be the children's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(agent, "DAY", DAY)
        patched.setattr(agent, "hours", hours)
        yield


@attrs.define(eq=False)
class Shop:
    """Places orders, says yes and answers mails, whether the server is there or not."""

    log: EventLog
    client: Client
    orders: list[str] = attrs.field(factory=list)
    _answered: set[str] = attrs.field(factory=set)

    def place(self) -> None:
        name = f"o-{len(self.orders) + 1}"
        order = OrderPlaced(name, "ada", RISKY if len(self.orders) % 2 else SMALL)
        patiently(lambda: self.client.send("orders", name, order, id=f"web-{name}"))
        self.orders.append(name)

    def answer(self) -> Shop:
        """Do what has not been done yet: orders wait for a person, crash or no crash."""
        for event in self._facts("approval.requested"):
            if event.stream not in self._answered:
                asked, key = decoded(app, event), event.stream.partition("-")[2]
                patiently(partial(self.client.approve, "orders", key, asked.approval_id, by="grace"))
                self._answered.add(event.stream)
        for name in self.orders:
            if name not in self._answered:
                patiently(partial(self.client.signal, "orders", name, "customer.reply", {"text": "all well"}, id=f"mail-{name}"))
                self._answered.add(name)
        return self

    def done(self) -> bool:
        return len(self._facts("activation.completed")) == len(self.orders)

    def _facts(self, kind: str) -> list:
        return patiently(lambda: list(self.log.read_all(types=[kind])))


def test_a_server_that_crashes_twenty_times_costs_no_order(server, url, log):
    print(f"CHAOS_SEED={SEED}")
    ledger, crashing = Ledger(), Crashes(server, log, random.Random(SEED))
    with servers(ledger) as around, Client(url, app) as client:
        shop = Shop(log, client)
        shop.place()
        with working(url, "tests.acceptance.orders_patient:app", {"ORDERS_SERVERS": around, "ORDERS_DAY": str(DAY)}) as workers:
            while crashing.count < CRASHES:
                shop.place()
                shop.answer()
                assert crashing.crash(lambda: not (shop.answer() and workers.running()))
                workers.check()
            until(lambda: shop.answer().done(), "every order is done")
            workers.stop()
            ends = workers.ends()
        assert [0] * WORKERS == [ended.code for ended in ends], "\n".join(ended.output for ended in ends)
    print(f"{crashing.count} crashes, the log grew again after {[round(each, 2) for each in crashing.silences]} s")
    assert [] == list(faults(shop, url, ledger, crashing.count))


def faults(shop: Shop, url: str, ledger: Ledger, crashes: int) -> Iterator[str]:
    """Everything that is not as it must be."""
    for name in shop.orders:
        for what in EFFECTS:
            if len(ledger.effects(what, name)) != 1:
                yield f"{name}: {what} {ledger.effects(what, name)}"
    states = folded(app, url)
    if set(states) != {f"orders-{name}" for name in shop.orders}:
        yield f"streams {sorted(states)}"
    for stream, state in states.items():
        (receipt,), (parcel,) = (ledger.effects(what, stream.partition("-")[2]) for what in ("charges", "parcels"))
        if (state.state.receipt, state.state.parcel, state.state.reply) != (receipt, parcel, "all well") or state.run.line or state.run.open:
            yield f"{stream} folds to {state.state}, in line {state.run.line}, open {state.run.open}"
    intents = {decoded(app, event).intent_id for event in shop.log.read_all(types=["intent.staged"])}
    if intents != {key for _, key in ledger.done} or len(intents) != len(EFFECTS) * len(shop.orders):
        yield f"staged {sorted(intents)}, carried out {sorted(ledger.done)}"
    settled = [decoded(app, event) for event in shop.log.read_all(types=["intent.settled"])]
    if Counter(fact.intent_id for fact in settled) != dict.fromkeys(intents, 1) or {fact.status for fact in settled} != {"OK"}:
        yield f"settled {settled}"
    for event in shop.log.read_all(types=["activation.failed", "stream.blocked"]):
        yield f"{event.stream}: {decoded(app, event)}"
    if set(ledger.model_calls) != journalled_keys(app, url) or len(ledger.model_calls) != len(shop.orders):
        yield f"model calls: {ledger.model_calls}"
    again = sum(times - 1 for times in (*ledger.model_calls.values(), *ledger.requests.values()))
    if again > crashes * len(shop.orders):
        yield f"{again} requests were made again: {ledger.model_calls} {ledger.requests}"
    print(f"{len(shop.orders)} orders; {again} requests were repeated, each under its first key")
    yield from not_the_same(app, url)
