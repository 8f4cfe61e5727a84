"""One life of an effector: `eventlog effector`, in a process forked from one that has loaded everything and done nothing.

Hundreds of lives end here, most of them young; what they cost must not be the reading of modules.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

from tests.effector.service.replicas import Replica

#: All that a life loads, but for the tools, which look at their life's environment.
LOADED = [
    "anyio._backends._asyncio",
    "httpcore",
    "httpx",
    "intentlog.agents",
    "intentlog.agents.retry",
    "intentlog.effector.bus.on_bus",
    "intentlog.effector.commands_effector",
    "intentlog.effector.crash",
    "intentlog.effector.metrics",
    "intentlog.effector.replica",
    "intentlog.eventlog.cli",
    "intentlog.eventlog.postgres",
    "intentlog.eventlog.sqlite",
    "tests.effector.gate.child",
    "tests.effector.gate.moments",
    "tests.services.bus",
]


#: Of two threads that ask at once for the end of a process, one is told 255; and whoever starts one asks for all the others'.
ONE_AT_A_TIME = threading.Lock()


def live(words: list[str], environment: dict[str, str], errors: str) -> None:
    """The whole life, its lines written to the file ``errors``."""
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
    os.environ.update(environment)
    if "GATE_INSTALLED" in environment:
        sys.path.insert(0, environment["GATE_INSTALLED"])
    warnings.simplefilter("error")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from intentlog.eventlog.cli import main

    if "GATE_HABIT" in environment:
        from tests.acceptance.kill.habits import HABITS

        HABITS[environment["GATE_HABIT"]]()
    sys.argv = ["eventlog", "effector", *words]
    main()


class Forked:
    """A process as ``subprocess`` would have it."""

    def __init__(self, words: list[str], environment: dict[str, str], errors: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LOADED)
        self._process = context.Process(target=live, args=(words, environment, str(errors)))
        with ONE_AT_A_TIME:
            self._process.start()

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; ``None`` while it lives."""
        with ONE_AT_A_TIME:
            return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """To it alone."""
        if self._process.pid is not None and self.poll() is None:
            os.kill(self._process.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended."""
        deadline = time.monotonic() + (timeout if timeout is not None else 3600.0)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("an effector", timeout or 0)
            time.sleep(0.01)
        return code


class ForkedReplica(Replica):
    """A replica that costs no more than what it does."""

    def __init__(self, folder: Path, name: str, words: list[str], environment: dict[str, str]) -> None:
        self.errors = folder / f"{name}.err"
        self.errors.touch()
        self.process = Forked(words, environment, self.errors)  # type: ignore[assignment]
