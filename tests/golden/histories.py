"""Golden histories: what every example has ever written, as bundles that each later build must replay the same.

``python -m tests.golden.histories NUMBER`` records the examples as they are now and writes ``histories/<example>-NUMBER.bundle`` for
those that are not there; do that with a release, and whenever an example or a runtime event has changed. What is there
is never written anew: a history that does not replay any more is what this is here to find.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from intentlog.agents import App, Input, send
from intentlog.agents.asking import answer, pending, signal
from intentlog.effector.process import Process
from intentlog.eventlog import EventLog, open_log
from intentlog.eventlog.errors import LeaseLost
from intentlog.replay.bundles import write_bundle

FOLDER: Final = Path(__file__).parent / "histories"
START: Final = 1_764_407_640_000_000
SECOND: Final = 1_000_000
DAY: Final = 86_400


@attrs.define
class Clock:
    """Passes slowly by itself, so that no two appends share a moment, and quickly when it is told to."""

    now: int = START

    def __call__(self) -> int:
        self.now += 137
        return self.now

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


@attrs.define(eq=False)
class Telling:
    """One example, on one log."""

    app: App
    log: EventLog
    clock: Clock

    def send(self, agent: str, key: str, payload: Any, input_id: str) -> None:
        send(self.app, self.log, Input(agent, key, payload, input_id))

    def run(self, dies_at: str = "") -> None:
        """A process until nothing is left to do now, or until it dies at a boundary."""
        asyncio.run(self._run(dies_at))

    async def _run(self, dies_at: str) -> None:
        process = Process(self.app, self.log, f"process{'-that-dies' if dies_at else ''}")

        def boundary(name: str, stream: str) -> None:
            if name == dies_at:
                process.stop()
                raise LeaseLost(f"it died at {name}")

        process.boundary = boundary
        await process.run(until_idle=True)
        if dies_at:
            self.log.schedule.evict(process.owner)


def refund(telling: Telling) -> None:
    """Two orders, one of them asked for twice, and a death between the bank and the log."""
    from examples.refund.refunds import RefundAsked

    telling.send("accounts", "acct-42", RefundAsked("o-1", 4200), "in-1")
    telling.run()
    telling.send("accounts", "acct-42", RefundAsked("o-1", 4200), "in-2")
    telling.send("accounts", "acct-42", RefundAsked("o-2", 900), "in-3")
    telling.run("tool.called")
    telling.run()


def triage(telling: Telling) -> None:
    """An issue with a comment, a pull request, a push, and a kind of delivery without a repository."""
    for line in (
        delivery("issues", 0, 1, "opened", issue={"state": "open", "title": "Crash in the README", "body": "It fails with an error."}),
        delivery("issue_comment", 0, 1, "created", issue={"state": "open", "title": "Crash in the README"}, comment={"body": "How do I add more emoji?"}),
        delivery("pull_request", 0, 2, "opened", pull_request={"state": "open", "title": "Add more emoji", "body": None, "labels": [{"name": "question"}]}),
        delivery("push", 0, None, None),
        {"event": "ping", "index": 0, "payload": {}},
    ):
        taken = telling.app.intake(line) if telling.app.intake else None
        assert taken is not None
        telling.clock.tick(60)
        send(telling.app, telling.log, taken)
        telling.run()


def delivery(kind: str, index: int, number: int | None, action: str | None, **payload: Any) -> dict[str, Any]:
    """As a line of a recording."""
    sender = {"login": "ada", "type": "User"}
    return {"event": kind, "index": index, "repository": "octo/hello", "number": number, "payload": {"action": action, "sender": sender, **payload}}


def orders(telling: Telling) -> None:
    """A risky order that a person releases, one that nobody answers for, a small one whose customer says nothing."""
    from examples.orders.agent import OrderPlaced

    log, codec = telling.log, telling.app.codec
    for number, cents in ((1, 250_000), (2, 300_000), (3, 1_200)):
        telling.send("orders", f"o-{number}", OrderPlaced(f"o-{number}", "ada@example.org", cents), f"web-{number}")
    telling.run()
    asked = next(each for each in pending(log, codec) if each.stream == "orders-o-1")
    answer(log, codec, asked.stream, asked.approval_id, approved=True, by="grace", reason="known customer", digest=asked.digest)
    telling.run("tool.called")
    for _ in range(2):
        telling.run()
        telling.clock.tick(2 * DAY + 60)
    telling.run()
    signal(log, codec, "orders", "o-1", "customer.reply", {"text": "all well, thanks"}, "mail-7")
    telling.run()
    telling.clock.tick(8 * DAY)
    telling.run()


def outbox(telling: Telling) -> None:
    """One effect under one name: wanted twice, by two producers, and once for another total; a failure that is tried again."""
    from examples.outbox.shop import Confirmed

    wanted: list[tuple[str, dict[str, Any]]] = [("44", {"tries": 3}), ("42", {}), ("42", {}), ("42", {"total": 130}), ("43", {"producers": 2})]
    for number, (key, more) in enumerate(wanted):
        asked: dict[str, Any] = {"order": key, "total": 125, **more}
        telling.send("shop", key, Confirmed(**asked), f"in-{number}")
        telling.run()
        telling.clock.tick(600)
    for _ in range(4):  # the turn that can only fail is tried again, and parked
        telling.run()
        telling.clock.tick(600)


def charge(telling: Telling) -> None:
    """A card that is charged, and one of which nobody knows because the process died in the call."""
    telling.send("customers", "ann", 1_200, "in-1")
    telling.run()
    telling.send("customers", "bob", 900, "in-2")
    telling.run("tool.called")
    telling.run()


EXAMPLES: Final[dict[str, Callable[[Telling], None]]] = {"refund": refund, "triage": triage, "orders": orders, "outbox": outbox, "charge": charge}


def app_of(example: str) -> App:
    """The app of an example, as it is now."""
    if example == "refund":
        from examples.refund.refunds import app as refunds

        return refunds
    if example == "triage":
        from examples.triage import app as triaging

        return triaging
    if example == "orders":
        from examples.orders import app as fulfilling

        return fulfilling
    if example == "charge":
        from examples.charge.shop import app as charging

        return charging
    from examples.outbox.shop import Mail, Shop

    return Shop(open_log("memory://"), Mail(failures=1)).app


def recorded() -> list[tuple[str, Path]]:
    """(example, file) of every history there is."""
    return [(path.stem.rpartition("-")[0], path) for path in sorted(FOLDER.glob("*.bundle"))]


@contextmanager
def world() -> Iterator[None]:
    """The servers that the examples ask. They look for their addresses when they are imported: tell in a process of its own."""
    from examples.orders import servers as of_orders
    from examples.triage import servers as of_triage
    from intentlog.effector.demo import servers as of_refunds

    with ExitStack() as running:
        money = running.enter_context(of_refunds.servers(of_refunds.Ledger()))
        shop = running.enter_context(of_orders.servers(of_orders.Ledger()))
        model, github = (of_triage.serve(each) for each in (of_triage.model, of_triage.github))
        os.environ |= {"REFUND_SERVERS": money, "CHARGE_PROVIDER": money, "ORDERS_SERVERS": shop}
        os.environ |= {"TRIAGE_MODEL_URL": f"http://127.0.0.1:{model.server_port}/v1", "TRIAGE_GITHUB_URL": f"http://127.0.0.1:{github.server_port}"}
        yield
        model.shutdown()
        github.shutdown()


def main(number: str) -> None:
    """Record what is not there."""
    FOLDER.mkdir(exist_ok=True)
    with world():
        for example in EXAMPLES:
            path = FOLDER / f"{example}-{number}.bundle"
            if not path.exists():
                subprocess.run([sys.executable, "-m", "tests.golden.histories", example, str(path)], check=True)


def tell(example: str, path: Path) -> None:
    """Let an example happen, and write down all of it."""
    clock = Clock()
    with closing(open_log("memory://", clock=clock)) as log:
        telling = Telling(app_of(example), log, clock)
        EXAMPLES[example](telling)
        manifest = write_bundle(log, list(log.streams()), path, telling.app)
    print(f"{path.name}: {len(manifest.streams)} streams, {sum(each.events for each in manifest.streams)} events, {path.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        tell(sys.argv[1], Path(sys.argv[2]))
