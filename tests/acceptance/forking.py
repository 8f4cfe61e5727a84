"""A program as a process of its own, forked from one that has read all modules and done nothing: what a life costs is what it does.

Hundreds of lives are killed in these tests, most of them young. It is a real process with a real end; only the reading of
modules, which nobody tests, is done once. Runs that nobody kills, which they are compared with, have an interpreter of their own.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: The command with an interpreter of its own.
PROGRAM = [sys.executable, "-W", "error", "-c", "from intentlog.eventlog.cli import main; main()"]
#: All that such programs load, but for their apps. One list for all of them: a test process has one such process, made by who asks first.
LOADED = [
    "anyio._backends._asyncio",
    "httpcore",
    "httpx",
    "intentlog.agents",
    "intentlog.agents.cli",
    "intentlog.agents.retry",
    "intentlog.agents.worker",
    "intentlog.effector.bus.on_bus",
    "intentlog.effector.cli",
    "intentlog.effector.commands_effector",
    "intentlog.effector.crash",
    "intentlog.effector.metrics",
    "intentlog.effector.replica",
    "intentlog.effector.serving",
    "intentlog.eventlog.cli",
    "intentlog.eventlog.postgres",
    "intentlog.eventlog.sqlite",
    "intentlog.replay",
    "tests.acceptance.forking",
    "tests.effector.gate.moments",
    "tests.services.bus",
    "tests.acceptance.warmed",
]
# multiprocessing looks after all of its processes whenever one is begun, and two who read the same end find it once.
_ONE_AT_A_TIME = threading.Lock()


def live(module: str, words: Sequence[str], environment: Mapping[str, str], cwd: str, output: str, errors: str, strict: bool) -> None:
    """``python -m module words…`` in this process; what it prints goes to the files ``output`` and ``errors``."""
    for name, numbers in ((output, (1, 2)), (errors, (2,))):
        to = os.open(name, os.O_WRONLY | os.O_APPEND)
        for number in numbers:
            os.dup2(to, number)
        os.close(to)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    if strict:
        sys.path.insert(0, cwd)
        warnings.simplefilter("error")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _context() -> ForkServerContext:
    """What processes are forked from, and sees to it that it is there, wherever the test that asks first is."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return context


class Forked:
    """What ``subprocess.Popen`` offers, as far as it is asked for here.

    ``errors``: where stderr goes, if not with stdout. ``strict``: as under ``python -W error -c``, that is, a warning is an error,
    and modules are found from ``cwd`` first.
    """

    def __init__(
        self, module: str, words: Sequence[str], environment: Mapping[str, str], cwd: Path, *, errors: Path | None = None, strict: bool = False
    ) -> None:
        self.args = [module, *words]
        self._code: int | None = None
        with tempfile.NamedTemporaryFile(prefix="intentlog-", suffix=".out", delete=False) as output:
            self._output = Path(output.name)
        given = (module, list(words), dict(environment), str(cwd), output.name, str(errors or output.name), strict)
        with _ONE_AT_A_TIME:
            self._process = _context().Process(target=live, args=given)
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while it lives."""
        with _ONE_AT_A_TIME:
            if self._code is None:
                self._code = self._process.exitcode
            return self._code

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

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises ``subprocess.TimeoutExpired``."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.returncode) is None:
            left = 1.0 if until is None else until - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            multiprocessing.connection.wait([self._process.sentinel], left)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Everything it printed, once it has ended. Raises ``subprocess.TimeoutExpired``."""
        self.wait(timeout)
        return self._output.read_text("utf-8", errors="replace"), None

    def close(self) -> None:
        """End it if it lives, and forget what it printed."""
        self.kill()
        self.wait()
        with _ONE_AT_A_TIME:
            self._process.close()
        self._output.unlink()


def eventlog(words: Sequence[str], environment: Mapping[str, str], cwd: Path, timeout: float = 120.0) -> subprocess.CompletedProcess[str]:
    """``eventlog words…`` under ``-W error`` as such a process, from its start to its end, what it printed apart from what it complained of."""
    with tempfile.NamedTemporaryFile(prefix="intentlog-", suffix=".err") as errors:
        forked = Forked("tests.house.command", words, environment, cwd, errors=Path(errors.name), strict=True)
        try:
            output, _ = forked.communicate(timeout)
            code = forked.returncode
        finally:
            forked.close()
        assert code is not None
        return subprocess.CompletedProcess(["eventlog", *words], code, output, Path(errors.name).read_text("utf-8", errors="replace"))
