"""``eventlog demo``: the story, told while it happens. Every sentence with a tick was checked just before it is printed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import attrs
import click

from ...agents import facts
from ...agents.app import runtime_codec
from ...eventlog.cli import found
from ...eventlog.console import COULD_NOT, OK, reading
from ...eventlog.printing import on_terminal, say, styled
from .servers import Ledger, servers

STREAM: Final = "accounts-acct-42"
SEND: Final = ("send", "accounts", "acct-42", "refund.asked", '{"order_id": "o-1", "cents": 4200}', "--id", "order-o-1")
SCRIPT: Final = "refunds.py"
DATABASE: Final = "eventlog.db"
_PATIENCE: Final = 60.0


class NotSo(Exception):
    """A claim of the story that does not hold."""


def tell(keep: str | None) -> int:
    """The demo, in the folder ``keep`` or in one that is gone afterwards; the exit code."""
    began = time.monotonic()
    if keep is not None:
        _make_room(Path(keep))
        code = _told(Path(keep))
    else:
        with tempfile.TemporaryDirectory(prefix="eventlog-demo-") as folder:
            code = _told(Path(folder))
    if code == OK:
        say()
        say(styled(f"All of it held, in {time.monotonic() - began:.1f} s.", bold=True) + (f" Look around in {keep}." if keep else ""))
    return code


def _make_room(folder: Path) -> None:
    """The folder, made unless it is there; what lies in it is somebody's, so nothing is written over (usage error)."""
    taken = sorted(each for each in (SCRIPT, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm") if os.path.lexists(folder / each))
    if taken:
        raise click.UsageError(f"--keep {folder}: it holds {' and '.join(taken)} already; the demo writes over nothing. Name a folder that is new or empty.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise click.UsageError(
            f"--keep {folder}: the demo cannot write there: {problem.strerror or problem}. Name a folder that you may make, or leave --keep out."
        ) from problem


def _told(folder: Path) -> int:
    ledger = Ledger()
    try:
        with servers(ledger) as url:
            Story(folder, url, ledger).tell()
    except NotSo as problem:
        say(styled(f"  ✗ {problem}", fg="red", bold=True))
        return COULD_NOT
    return OK


@attrs.define
class Story:
    """One telling, in one folder, against one pair of servers."""

    folder: Path
    url: str
    ledger: Ledger
    _step: int = 0
    _intent_id: str = ""

    def tell(self) -> None:
        """All the steps; raises ``NotSo`` at the first that does not hold."""
        (self.folder / SCRIPT).write_text(files(__package__).joinpath(SCRIPT).read_text("utf-8"), "utf-8")
        say(f"The agent is {self.folder / SCRIPT}; a model and a bank are on a loopback port.")
        say(styled("  $ export EVENTLOG_APP=refunds:app", fg="cyan"))
        self._input()
        self._kill()
        self._restart()
        self._again()
        self._story()

    def _input(self) -> None:
        self._head("A customer wants 42.00 back")
        self._command("init")
        self._command(*SEND)
        self._holds("the input is on the log before anybody acts on it", self._facts() == ["InputReceived"])

    def _kill(self) -> None:
        self._head("The agent runs, and dies at the worst moment: the bank has paid, the outcome is not recorded")
        code = self._command("run", "refunds:app", "--until-idle", crash="tool.called", code=-signal.SIGKILL)
        self._holds("the process was ended by SIGKILL: no handler ran, nothing was flushed", code == -signal.SIGKILL)
        self._holds("the model was asked once, and its answer is on the log", len(self.ledger.model_calls) == 1 and "ModelCallCached" in self._facts())
        self._intent_id = self._intents(facts.IntentStaged)[0]
        self._holds(f"the bank paid once, under the intent's id {self._intent_id[:8]}…", list(self.ledger.receipts) == [self._intent_id])
        self._holds("the log knows of the attempt and of no outcome", self._count(facts.IntentAttempted) == 1 and self._count(facts.IntentSettled) == 0)

    def _restart(self) -> None:
        self._head("It is started again, and goes on from the log")
        self._command("run", "refunds:app", "--until-idle")
        self._holds("one model call is billed in all: the second run read the answer from the log", len(self.ledger.model_calls) == 1)
        self._holds(
            f"the tool was called again, under the same intent id {self._intent_id[:8]}…",
            self.ledger.payment_requests == [self._intent_id] * 2 and self._intents(facts.IntentStaged) == [self._intent_id],
        )
        receipt = self.ledger.receipts[self._intent_id]
        self._holds(f"the bank's ledger has one payment: {receipt}", len(self.ledger.receipts) == 1)
        settled = [fact for fact in self._read() if isinstance(fact, facts.IntentSettled)]
        outputs = [fact.output for fact in self._read() if isinstance(fact, facts.Completed)]
        self._holds(f"the outcome is recorded once, and the agent ended with {receipt}", [fact.value for fact in settled] == outputs == [receipt])

    def _again(self) -> None:
        self._head("The customer's client was not sure and sends it again")
        before = len(self._facts())
        self._command(*SEND)
        self._command("run", "refunds:app", "--until-idle")
        self._holds(
            "nothing new on the log, nothing asked, nothing paid",
            len(self._facts()) == before and len(self.ledger.model_calls) == 1 and len(self.ledger.payment_requests) == 2,
        )

    def _story(self) -> None:
        known = found()
        self._head("What the log tells")
        self._command(*(("show", STREAM) if "show" in known else ("tail",)), loud=True)
        if "replay" in known:
            self._head("The agent's code runs once more over the log, with the model and the bank out of reach")
            asked = len(self.ledger.model_calls), len(self.ledger.payment_requests)
            self._command("replay", STREAM, "--app", "refunds:app", loud=True, servers="http://127.0.0.1:9")
            self._holds("it decides the same, and asks nobody", asked == (len(self.ledger.model_calls), len(self.ledger.payment_requests)))

    # ── how it is told ──────────────────────────────────────────────────────────────────────────────────────────────

    def _head(self, text: str) -> None:
        self._step += 1
        say()
        say(styled(f"{self._step}  {text}", bold=True))

    def _holds(self, claim: str, so: bool) -> None:
        if not so:
            raise NotSo(f"this should hold and does not: {claim}")
        say(styled("  ✓ ", fg="green") + claim)

    def _command(self, *words: str, crash: str = "", code: int = 0, loud: bool = False, servers: str = "") -> int:
        """Run ``eventlog`` with ``words`` in a child process; raises ``NotSo`` unless it ends with ``code``."""
        front = f"EVENTLOG_CRASH_AT={crash} " if crash else ""
        say(styled(f"  $ {front}eventlog {shlex.join(words)}", fg="cyan"))
        settings = {"REFUND_SERVERS": servers or self.url, "EVENTLOG_URL": f"sqlite:///{DATABASE}", "EVENTLOG_APP": "refunds:app", "EVENTLOG_CRASH_AT": crash}
        environment = {**os.environ, **settings, "PYTHONUTF8": "1"}
        program = [sys.executable, "-c", "from intentlog.eventlog.cli import main; main()", *words]
        began = time.monotonic()
        # Only what is worth reading goes straight to the terminal, so that it may use its colours and its width.
        straight = loud and on_terminal()
        pipe = None if straight else subprocess.PIPE
        try:
            done = subprocess.run(program, cwd=self.folder, env=environment, stdout=pipe, stderr=pipe, text=True, timeout=_PATIENCE, check=False)
        except subprocess.TimeoutExpired as problem:
            raise NotSo(f"the command did not end within {_PATIENCE:.0f} s") from problem
        if not straight:
            for line in (done.stdout + (done.stderr if done.returncode != code else "")).splitlines():
                say(f"    {line}")
        if done.returncode == -signal.SIGKILL:
            say(styled(f"    killed after {time.monotonic() - began:.2f} s", fg="red"))
        if done.returncode != code:
            raise NotSo(f"exit code {done.returncode}, expected {code}")
        return done.returncode

    # ── what the log says ───────────────────────────────────────────────────────────────────────────────────────────

    def _read(self) -> list[Any]:
        codec = runtime_codec()
        with reading(f"sqlite:///{self.folder / DATABASE}") as log:
            return [codec.decode_stored(event) for event in log.read(STREAM) if codec.registry.get(event.type) is not None]

    def _facts(self) -> list[str]:
        return [type(fact).__name__ for fact in self._read()]

    def _count(self, kind: type) -> int:
        return sum(isinstance(fact, kind) for fact in self._read())

    def _intents(self, kind: Callable[..., Any]) -> list[str]:
        return [fact.intent_id for fact in self._read() if type(fact) is kind]
