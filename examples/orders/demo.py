"""``make demo-orders``: the story of one order, told while it happens. Every sentence with a tick was checked just before."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs

from examples.orders import app
from examples.orders.servers import EFFECTS, Ledger, servers
from intentlog.agents import facts
from intentlog.eventlog import open_log
from intentlog.eventlog.printing import on_terminal, say, styled

ROOT = Path(__file__).resolve().parents[2]
STREAM = "orders-o-1"
SEND = ("send", "orders", "o-1", "order.placed", '{"id": "o-1", "customer": "ada@example.org", "cents": 250000}', "--id", "web-1")
DAY = 10.0
"""Seconds."""
PATIENCE = 60.0


class NotSo(Exception):
    """A claim of the story that does not hold."""


@attrs.define
class Story:
    """One telling, on one log, against one set of servers."""

    folder: Path
    url: str
    ledger: Ledger
    step: int = 0

    def tell(self) -> None:
        say(f"The agent is examples/orders/agent.py; a day has {DAY:g} seconds. Model, bank, carrier and mail are on a loopback port.")
        self.placed()
        self.approved()
        self.charged()
        self.slept()
        self.replied()
        self.looked_back()

    def placed(self) -> None:
        self.head("An order of 2,500.00 comes in; the process dies when the model's answer is written down and nobody has seen it")
        self.command("init")
        self.command(*SEND)
        self.killed("model.journalled")
        self.holds("the model was asked once, and its answer is on the log", self.billed() == 1 and len(self.facts(facts.ModelCallCached)) == 1)
        self.command("run", "examples.orders:app", "--until-idle")
        self.holds("the answer was read from the log: still one model call", self.billed() == 1)
        self.holds("the risk is high, so a person is asked; nothing is charged meanwhile", bool(self.facts(facts.ApprovalRequested)) and not self.ledger.done)

    def approved(self) -> None:
        self.head("A person says yes, while no process runs at all")
        (asked,) = self.facts(facts.ApprovalRequested)
        self.command("approvals", "approve", STREAM, asked.approval_id, "--digest", asked.digest.hex(), "--by", "grace", "--reason", "known customer")
        self.holds("the answer is on the log", [fact.approved for fact in self.facts(facts.ApprovalDecided)] == [True])

    def charged(self) -> None:
        self.head("The process dies when the bank has charged and that is not written down")
        self.killed("tool.called")
        (intent,) = self.facts(facts.IntentStaged)
        self.holds(f"the bank charged once, under the intent's id {intent.intent_id[:8]}…", list(self.ledger.done) == [("charges", intent.intent_id)])
        self.command("run", "examples.orders:app", "--until-idle")
        self.holds("the bank was asked again under the same id, and charged nothing more", self.ledger.requests["charges", intent.intent_id] == 2)
        self.holds("one charge in all, one model call in all", len(self.ledger.effects("charges")) == 1 and self.billed() == 1)

    def slept(self) -> None:
        (timer,) = self.facts(facts.TimerArmed)
        self.head("Two days pass, and nothing runs: a sleeping order is a line in the log")
        left = timer.fires_at / 1e6 - time.time()
        self.holds(f"it sleeps for {left:.1f} s more", left > 0)
        time.sleep(max(0.0, left) + 0.1)
        self.killed("attempt.recorded:2")
        self.command("run", "examples.orders:app", "--until-idle")
        once = {what: len(self.ledger.effects(what)) for what in EFFECTS}
        self.holds("killed between the carrier and the mail: one parcel, one mail, one charge", once == dict.fromkeys(EFFECTS, 1))

    def replied(self) -> None:
        self.head("The customer answers; the last turn is killed before and after its append")
        self.command("signal", "orders", "o-1", "customer.reply", '{"text": "all well, thanks"}', "--id", "mail-7")
        self.killed("turn.decided")
        self.holds("killed before the append: nothing of the turn is there", not self.facts(facts.Completed))
        self.killed("turn.appended")
        (completed,) = self.facts(facts.Completed)
        self.holds(f"killed after it: all of it is, and the order ended with {completed.output}", [completed.output] == self.ledger.effects("charges"))
        self.command(*SEND)
        self.command("run", "examples.orders:app", "--until-idle")
        self.holds("the shop sends the order again: nothing happens twice", len(self.facts(facts.InputReceived)) == len(self.facts(facts.Completed)) == 1)

    def looked_back(self) -> None:
        self.head("What the log tells")
        self.command("show", STREAM, "--app", "examples.orders:app", loud=True)
        asked = self.billed(), self.ledger.requests.total()
        self.command("replay", STREAM, "--app", "examples.orders:app", loud=True, servers="http://127.0.0.1:9")
        self.holds("the code runs over the log once more, decides the same, and asks nobody", asked == (self.billed(), self.ledger.requests.total()))

    # ── how it is told ──────────────────────────────────────────────────────────────────────────────────────────────────

    def head(self, text: str) -> None:
        self.step += 1
        say()
        say(styled(f"{self.step}  {text}", bold=True))

    def holds(self, claim: str, so: bool) -> None:
        if not so:
            raise NotSo(f"this should hold and does not: {claim}")
        say(styled("  ✓ ", fg="green") + claim)

    def killed(self, boundary: str) -> None:
        self.command("run", "examples.orders:app", "--until-idle", crash=boundary, code=-signal.SIGKILL)

    def command(self, *words: str, crash: str = "", code: int = 0, loud: bool = False, servers: str = "") -> None:
        """Run ``eventlog`` in a child process; raises ``NotSo`` unless it ends with ``code``."""
        say(styled(f"  $ {f'EVENTLOG_CRASH_AT={crash} ' if crash else ''}eventlog {shlex.join(words)}", fg="cyan"))
        settings = {
            "ORDERS_SERVERS": servers or self.url,
            "ORDERS_DAY": str(DAY),
            "EVENTLOG_URL": f"sqlite:///{self.folder / 'eventlog.db'}",
            "EVENTLOG_CRASH_AT": crash,
        }
        environment = {**os.environ, **settings, "PYTHONUTF8": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        program = [sys.executable, "-c", "from intentlog.eventlog.cli import main; main()", *words]
        straight = loud and on_terminal()
        pipe = None if straight else subprocess.PIPE
        began = time.monotonic()
        done = subprocess.run(program, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, timeout=PATIENCE, check=False)
        if not straight and (loud or done.returncode not in (0, -signal.SIGKILL)):
            for line in (done.stdout + done.stderr).splitlines():
                say(f"    {line}")
        if done.returncode == -signal.SIGKILL:
            say(styled(f"    killed after {time.monotonic() - began:.2f} s", fg="red"))
        if done.returncode != code:
            raise NotSo(f"exit code {done.returncode}, expected {code}")

    # ── what the log and the world say ──────────────────────────────────────────────────────────────────────────────────

    def billed(self) -> int:
        return self.ledger.model_calls.total()

    def facts(self, kind: Any) -> list[Any]:
        log = open_log(f"sqlite:///{self.folder / 'eventlog.db'}", create=False)
        try:
            return [fact for stored in log.read(STREAM) if isinstance(fact := app.codec.decode_stored(stored), kind)]
        finally:
            log.close()


def main() -> int:
    """The exit code: 0 when all of it held."""
    began = time.monotonic()
    ledger = Ledger()
    try:
        with tempfile.TemporaryDirectory(prefix="orders-demo-") as folder, servers(ledger) as url:
            Story(Path(folder), url, ledger).tell()
    except NotSo as problem:
        say(styled(f"  ✗ {problem}", fg="red", bold=True))
        return 3
    say()
    say(styled(f"All of it held, in {time.monotonic() - began:.1f} s.", bold=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
