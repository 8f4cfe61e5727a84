"""Replicas as real processes on one log: staged intents, a ledger of what tools did, what each replica says of itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from intentlog.agents import facts
from intentlog.agents.app import runtime_codec
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.acceptance.forking import PROGRAM, Forked

CODEC = runtime_codec()
TOOLS = """
import os, pathlib, time
from datetime import timedelta
from intentlog.agents.tools import IntentInfo, ToolSet, tool

HERE = pathlib.Path(__file__).parent

def note(what, intent):
    with (HERE / "ledger.txt").open("a") as ledger:
        ledger.write(f"{what} {intent.intent_id} {os.getpid()}\\n")

@tool(side_effect=True)
def work(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    return name

@tool(side_effect=True)
def nap(seconds: float, *, intent: IntentInfo) -> str:
    note("begun", intent)
    time.sleep(seconds)
    return "woke"

@tool(side_effect=True)
def gated(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    while not (HERE / "open").exists():
        time.sleep(0.01)
    note("ended", intent)
    return name

@tool(side_effect=True)
async def stone(name: str, *, intent: IntentInfo) -> str:
    note("begun", intent)
    time.sleep(3600)
    return "never"

TOOLS = ToolSet([work, nap, gated, stone])
SLOW = [tool(side_effect=True, timeout=timedelta(minutes=10), name="slow")(lambda: None)]
"""


def eventually(holds: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What ``holds()`` gives once that is true; fails when it never is."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)
    return found


class Replica:
    """One child process, forked from one that has read all modules; ``module`` is what it runs, or nothing for an interpreter of its own."""

    process: Forked | subprocess.Popen[bytes]

    def __init__(self, folder: Path, name: str, words: list[str], environment: dict[str, str], module: str = "tests.house.command") -> None:
        self.errors = folder / f"{name}.err"
        given = {**os.environ, **environment}
        with self.errors.open("wb") as errors:
            if module:
                self.process = Forked(module, ["effector", *words], given, folder, errors=self.errors, strict=True)
            else:
                nowhere = subprocess.DEVNULL
                self.process = subprocess.Popen([*PROGRAM, "effector", *words], cwd=folder, env=given, stdin=nowhere, stdout=nowhere, stderr=errors)

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """What it logged so far."""
        whole = self.errors.read_text("utf-8").rpartition("\n")[0].splitlines()
        read = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in read if event in ("", line["event"])]

    @property
    def url(self) -> str:
        """Where its health is."""

        def told() -> list[dict[str, Any]]:
            assert self.process.poll() is None, self.errors.read_text()
            return self.lines("serving")

        return str(eventually(told)[0]["health"])

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a page."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as problem:
            return problem.code, problem.read().decode()

    def health(self) -> dict[str, Any]:
        """The JSON of ``/readyz``."""
        found: dict[str, Any] = json.loads(self.get("/readyz")[1])
        return found

    def metric(self, sample: str) -> float:
        """One sample of ``/metrics``, 0 when there is none."""
        front = f"intentlog_effector_{sample} "
        return next((float(line.removeprefix(front)) for line in self.get("/metrics")[1].splitlines() if line.startswith(front)), 0.0)

    def send(self, number: int) -> None:
        """A signal."""
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM, seconds: float = 30.0) -> int:
        """Its exit code, after a signal that finds it serving."""
        assert self.url
        self.send(number)
        return self.process.wait(seconds)

    def close(self) -> None:
        """End it, if it still runs."""
        if isinstance(self.process, Forked):
            self.process.close()
        else:
            self.process.kill()
            self.process.wait()


class World:
    """A folder with tools and a log, and the replicas on it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url
        (folder / "tools.py").write_text(TOOLS)
        self.log = open_log(url)
        self.ids = id_maker(system_clock)
        self.replicas: list[Replica] = []

    def close(self) -> None:
        """End what still runs."""
        for each in self.replicas:
            each.close()
        self.log.close()

    def stage(self, key: str, tool: str = "work", ttl: int = 3600 * SECOND, **args: Any) -> str:
        """One intent; its id."""
        intent_id = str(uuid.uuid4())
        fact = facts.IntentStaged(intent_id, 0, 0, tool, args or {"name": key}, b"", system_clock() + ttl)
        self.log.append(f"a-{key}", [CODEC.stage(fact, event_id=self.ids(), correlation=b"c" * 16)], ANY)
        return intent_id

    def start(self, *words: str, registry: str = "tools:TOOLS", module: str = "tests.house.command", **environment: str) -> Replica:
        """A replica, left running."""
        name = f"r{len(self.replicas)}"
        given = ["--registry", registry, "--log", self.url, "--owner", name, "--poll-ms", "50", *words]
        replica = Replica(self.folder, name, given, environment, module)
        self.replicas.append(replica)
        return replica

    def settled(self) -> dict[str, list[facts.IntentSettled]]:
        """Every outcome on the log, by intent."""
        found: dict[str, list[facts.IntentSettled]] = {}
        for each in self.log.read_all(types=["intent.settled"]):
            fact = CODEC.decode_stored(each)
            found.setdefault(fact.intent_id, []).append(fact)
        return found

    def statuses(self, *intents: str) -> list[str]:
        """The one status of each, in order; fails on an intent that has two outcomes."""
        settled = self.settled()
        assert [] == [each for each, outcomes in settled.items() if len(outcomes) > 1]
        return [settled[each][0].status if each in settled else "" for each in intents]

    def ledger(self, what: str = "begun") -> list[str]:
        """Ids of the intents whose tool began, or ended."""
        return [words[1] for words in self._ledger() if words[0] == what]

    def _ledger(self) -> Iterator[list[str]]:
        file = self.folder / "ledger.txt"
        if file.exists():
            yield from (line.split() for line in file.read_text().splitlines())

    def open_gate(self) -> None:
        """Let every ``gated`` tool end."""
        (self.folder / "open").touch()

    def stop_between_commits(self, replica: Replica) -> None:
        """SIGSTOP, at a moment when the replica holds no lock that others need: nobody could take over before it went on."""
        while True:
            replica.send(signal.SIGSTOP)
            try:
                self.log.schedule.wake("probe", "probe", 0)
            except LogUnavailable:
                replica.send(signal.SIGCONT)
                time.sleep(0.01)
            else:
                return
