"""A program as a process of its own, forked from one that has read all modules and done nothing: what a life costs is what it does.

Hundreds of lives are killed in these tests, most of them young. It is a real process with a real end; only the reading of
modules, which nobody tests, is done once. Runs that nobody kills, which they are compared with, have an interpreter of their own.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: All that such programs load, but for their apps.
LOADED = [
    "httpx",
    "intentlog.agents",
    "intentlog.agents.cli",
    "intentlog.agents.worker",
    "intentlog.effector.cli",
    "intentlog.effector.commands_effector",
    "intentlog.effector.metrics",
    "intentlog.effector.replica",
    "intentlog.effector.serving",
    "intentlog.eventlog.cli",
    "intentlog.eventlog.postgres",
    "intentlog.eventlog.sqlite",
    "tests.acceptance.forking",
    "tests.acceptance.warmed",
]
# multiprocessing looks after all of its processes whenever one is begun, and two who read the same end find it once.
_ONE_AT_A_TIME = threading.Lock()


def live(module: str, words: Sequence[str], environment: Mapping[str, str], cwd: str, output: str) -> None:
    """``python -m module words…`` in this process; what it prints goes to the file ``output``."""
    to = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(to, 1)
    os.dup2(to, 2)
    os.close(to)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


class Forked:
    """What ``subprocess.Popen`` offers, as far as it is asked for here."""

    def __init__(self, module: str, words: Sequence[str], environment: Mapping[str, str], cwd: Path) -> None:
        self.args = [module, *words]
        with tempfile.NamedTemporaryFile(prefix="intentlog-", suffix=".out", delete=False) as output:
            self._output = Path(output.name)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(LOADED)
        self._process = context.Process(target=live, args=(module, list(words), dict(environment), str(cwd), output.name))
        with _ONE_AT_A_TIME:
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while it lives."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def poll(self) -> int | None:
        """The same, as a question."""
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To it alone, if it is there."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Everything it printed, once it has ended. Raises ``subprocess.TimeoutExpired``."""
        until = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            multiprocessing.connection.wait([self._process.sentinel], left)
        return self._output.read_text("utf-8", errors="replace"), None

    def close(self) -> None:
        """End it if it lives, and forget what it printed."""
        self.kill()
        self.communicate()
        with _ONE_AT_A_TIME:
            self._process.close()
        self._output.unlink()
