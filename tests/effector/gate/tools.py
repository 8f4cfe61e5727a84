"""What the effectors of the gate carry out, and where they die inside of it. Every call stands in a file before anything else happens.

``GATE_LEDGER`` names the file, ``GATE_LIFE`` whoever writes, ``GATE_DIE`` a moment inside a tool, ``effect made:2`` for the
second call that comes so far; ``GATE_PACE`` is how many milliseconds an effect takes.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from examples.charge import tools as example
from intentlog.agents import Retryable, RetryPolicy
from intentlog.agents.tools import IntentInfo, ToolSet, tool
from tests.effector.gate.moments import BEGUN, MADE


class Ledger:
    """A file that several lives append to, a line at a time."""

    def __init__(self, path: Path, life: str, die: str, pace: float) -> None:
        self.path, self.life, self.pace = path, life, pace
        self._where, _, nth = die.partition(":")
        self._nth = int(nth or 0)
        self._times = itertools.count(1)

    def note(self, what: str, intent: IntentInfo) -> None:
        """One line, written at once and safe before this returns."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(file, f"{what} {intent.intent_id} {intent.attempt} {self.life}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)

    def knows(self, what: str, intent_id: str) -> bool:
        """Whether there is such a line."""
        return self.path.exists() and any(line.split()[:2] == [what, intent_id] for line in self.path.read_text().splitlines())

    @contextmanager
    def call(self, intent: IntentInfo) -> Iterator[None]:
        """Around an effect; one of the moments may be the last."""
        self.note("begun", intent)
        self._moment(BEGUN)
        yield
        self._moment(MADE)

    def _moment(self, name: str) -> None:
        if name == self._where and next(self._times) == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


LEDGER = Ledger(Path(os.environ["GATE_LEDGER"]), os.environ["GATE_LIFE"], os.environ.get("GATE_DIE", ""), int(os.environ.get("GATE_PACE", "0")) / 1000)


@tool(side_effect=True, idempotent=True)
async def charge(customer_id: str, amount_cents: int, *, intent: IntentInfo) -> str:
    """Idempotent: the one of the example, whose provider keys charges by the intent id."""
    with LEDGER.call(intent):
        return str(await example.charge.fn(customer_id, amount_cents, intent=intent))


@tool(side_effect=True)
def mail(customer_id: str, *, intent: IntentInfo) -> str:
    """Promises nothing."""
    with LEDGER.call(intent):
        time.sleep(LEDGER.pace)
        LEDGER.note("did", intent)
    return f"mailed {customer_id}"


@tool(side_effect=True, retry=RetryPolicy(first=timedelta(milliseconds=30)))
def print_label(customer_id: str, *, intent: IntentInfo) -> str:
    """Promises nothing, and its first attempt fails in a way that may heal."""
    with LEDGER.call(intent):
        if intent.attempt == 1:
            raise Retryable("the printer is warming up")
        LEDGER.note("did", intent)
    return f"printed {customer_id}"


def found(intent: IntentInfo, customer_id: str) -> str | None:
    """What the other side says of a transfer."""
    return "found" if LEDGER.knows("did", intent.intent_id) else None


@tool(side_effect=True, reconcile=found)
def transfer(customer_id: str, *, intent: IntentInfo) -> str:
    """The other side can be asked."""
    with LEDGER.call(intent):
        time.sleep(LEDGER.pace)
        LEDGER.note("did", intent)
    return "found"


TOOLS = ToolSet([charge, mail, print_label, transfer])
