"""Show 1: examples/orders, killed with SIGKILL at every step boundary it meets: each effect once, no journalled answer asked for again."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest

from examples.orders import agent
from examples.orders.servers import EFFECTS, Ledger, servers
from intentlog.agents.client import Client
from intentlog.effector.crash import BOUNDARIES
from intentlog.eventlog import EventLog, LogUnavailable, StoreSchemaError, open_log
from intentlog.eventlog.console import COULD_NOT
from tests.acceptance.harness import ROOT, decoded, end_of, folded, forked, journalled_keys, not_the_same, run
from tests.acceptance.kill.lives import CHILD
from tests.acceptance.orders_patient import app, hours
from tests.stores import Store, part_of

T = TypeVar("T")
#: Seconds; the order sleeps for two of these.
DAY = 0.5
PATIENCE = 60.0
STREAM = "orders-o-1"
ORDER = {"agent": "orders", "key": "o-1", "type": "order.placed", "payload": {"id": "o-1", "customer": "ada", "cents": 250_000}, "id": "web-1"}
#: Cells at a time: most of each is waiting.
AT_ONCE = 4


def patiently(look: Callable[[], T]) -> T:
    """What ``look()`` gives once nobody who starts or dies holds the file."""
    for _ in range(200):
        try:
            return look()
        except LogUnavailable:
            time.sleep(0.02)
    return look()


@attrs.define(eq=False)
class Life:
    """One order on one log, with the world around it."""

    folder: Path
    url: str
    ledger: Ledger
    store: Store
    log: str
    _open: EventLog | None = None
    #: What was in the journal when the process died, and how often it had been asked for by then.
    _paid: dict[str, int] = attrs.field(factory=dict)

    def words(self, *more: str) -> list[str]:
        file = self.folder / "orders.jsonl"
        file.write_text(json.dumps(ORDER) + "\n", "utf-8")
        return ["run", "tests.acceptance.orders_patient:app", "--log", self.log, "--input", str(file), *more]

    def env(self, crash: str) -> dict[str, str]:
        counts = {"KILL_COUNTS": str(self.folder / "counts.json")}
        return counts | {"ORDERS_SERVERS": self.url, "ORDERS_DAY": str(DAY), "PYTHONDONTWRITEBYTECODE": "1"} | ({"EVENTLOG_CRASH_AT": crash} if crash else {})

    def facts(self, *types: str) -> list[Any]:
        try:
            self._open = self._open or patiently(lambda: open_log(self.log, create=False))
        except StoreSchemaError:  # not even made yet
            return []
        return [decoded(app, stored) for stored in self._open.read_all(types=types)]

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def lived(self, crash: str = "") -> bool:
        """Serve until the order is through, whatever dies; a person and a customer do their part. Whether it was killed."""
        killed, ends = False, time.monotonic() + PATIENCE
        while True:
            with forked(CHILD, self.words(), self.env("" if killed else crash)) as started:
                while started.poll() is None and not self.facts("activation.completed"):
                    assert time.monotonic() < ends, [type(fact).__name__ for fact in self.facts()]
                    self.others_do_their_part()
                    time.sleep(0.02)
                if started.poll() is None and (killed or not crash or self.settled_down(started)):
                    started.terminate()
                ended = end_of(started)
            if not ended.killed:
                # It may have had no time to listen; 3 and not a word is its own way of saying that it had not begun to serve.
                assert ended.code in (0, -signal.SIGTERM) or (ended.code, ended.output) == (COULD_NOT, ""), ended.output
                return killed
            assert not killed, "killed twice"
            killed = True
            self.close()
            self.store.after_a_death(self.log)
            self._paid = {key: self.ledger.model_calls[key] for key in journalled_keys(app, self.log)}

    def settled_down(self, started: Any) -> bool:
        """Give a crash at the very end the time to happen."""
        began = time.monotonic()
        while started.poll() is None and time.monotonic() - began < 1.0:
            time.sleep(0.02)
        return started.poll() is None

    def others_do_their_part(self) -> None:
        asked = self.facts("approval.requested")
        if asked and not self.facts("approval.decided"):
            with patiently(lambda: Client(self.log)) as client:
                client.approve("orders", "o-1", asked[0].approval_id, by="grace")
                client.signal("orders", "o-1", "customer.reply", {"text": "all well"}, id="mail-7")

    def faults(self, crash: str = "") -> Iterator[str]:
        """Everything that is not as it must be."""
        outputs = [fact.output for fact in self.facts("activation.completed")]
        if outputs != self.ledger.effects("charges"):
            yield f"ended with {outputs}, charged {self.ledger.effects('charges')}"
        for what in EFFECTS:
            if len(self.ledger.effects(what)) != 1:
                yield f"{what}: {self.ledger.effects(what)}"
        intents = {fact.intent_id for fact in self.facts("intent.staged")}
        if intents != {key for _, key in self.ledger.done} or len(intents) != 3:
            yield f"staged {sorted(intents)}, carried out {sorted(self.ledger.done)}"
        boundary = crash.partition(":")[0]
        if {key: self.ledger.model_calls[key] for key in self._paid} != self._paid or set(self.ledger.model_calls) != journalled_keys(app, self.log):
            yield f"model calls: {self.ledger.model_calls}, journalled when it died: {self._paid}"
        if boundary not in ("model.answered", "checkpointed") and self.ledger.model_calls.total() != 1:
            yield f"a model call was repeated: {self.ledger.model_calls}"
        again = sum(times - 1 for times in self.ledger.requests.values())
        # One that was in flight when the process died at something else is asked for again, under the same key.
        if again > bool(crash) or (boundary == "tool.called" and again != 1):
            yield f"{again} effects were asked for again"
        once = Counter(fact.intent_id for fact in self.facts("intent.settled"))
        if set(once.values()) != {1} or {fact.status for fact in self.facts("intent.settled")} != {"OK"}:
            yield f"settled {once}"
        if self.facts("activation.failed"):
            yield f"{self.facts('activation.failed')}"
        state = folded(app, self.log)[STREAM]
        if (state.state.receipt, state.state.parcel, state.state.reply) != ("charge-1", "parcel-1", "all well") or state.run.line:
            yield f"folds to {state.state}, in line {state.run.line}"
        yield from not_the_same(app, self.log)


@contextmanager
def life(store: Store, folder: Path) -> Iterator[Life]:
    folder.mkdir(parents=True)
    ledger = Ledger()
    with servers(ledger) as url:
        made = Life(folder, url, ledger, store, store.url(folder / "log"))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture(scope="module", autouse=True)
def short_days() -> Iterator[None]:
    """The code runs here too, when it is replayed, and its days must be the children's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(agent, "DAY", DAY)
        patched.setattr(agent, "hours", hours)
        yield


@pytest.fixture(scope="module")
def counts(tmp_path_factory, short_days, shared_store) -> dict[str, int]:
    """How often each boundary is met when nothing dies."""
    with life(shared_store, tmp_path_factory.mktemp("unkilled") / "case") as made:
        assert (False, []) == (made.lived(), list(made.faults()))
        found: dict[str, int] = json.loads((made.folder / "counts.json").read_text("utf-8"))
        return found


def cell(store: Store, folder: Path, crash: str, last: bool) -> list[str]:
    """Everything that is wrong with an order during which the process died at ``crash``.

    Two effects that end at nearly the same time are told in one turn or in two, so a boundary may be met once less.
    """
    with life(store, folder) as made:
        killed = made.lived(crash)
        return [*([] if killed or last else ["was not killed"]), *made.faults(crash if killed else "")]


def test_killed_at_every_step_boundary_each_effect_is_there_once(counts, tmp_path, shared_store):
    # How often a checkpoint is saved depends on what is in flight; the others are met as often in every run.
    crashes = [f"{boundary}:{n}" for boundary in BOUNDARIES for n in range(1, (1 if boundary == "checkpointed" else counts[boundary]) + 1)]
    assert len(crashes) > 20
    crashes = part_of(shared_store, crashes, 2)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(
            zip(
                crashes,
                pool.map(
                    lambda each: cell(shared_store, tmp_path / each.replace(":", "-"), each, each.endswith(f":{counts[each.partition(':')[0]]}")), crashes
                ),
                strict=True,
            )
        )
    assert {} == {crash: faults for crash, faults in found.items() if faults}


def test_an_order_of_little_money_asks_nobody(tmp_path, shared_store):
    with life(shared_store, tmp_path / "case") as made:
        command = [sys.executable, "-m", CHILD, *made.words("--until-idle")]
        (made.folder / "orders.jsonl").write_text(json.dumps(ORDER).replace("250000", "500") + "\n", "utf-8")
        assert 0 == run(command, made.env("")).code
        assert ([], 1, []) == (made.facts("approval.requested"), len(made.ledger.effects("charges")), made.ledger.effects("parcels"))


def test_the_demo_holds():
    ended = run([sys.executable, "-m", "examples.orders.demo"], cwd=ROOT)
    assert (0, True) == (ended.code, "All of it held" in ended.output), ended.output
