"""How things are measured: every contender in a process of its own, in turns, the best round of each counting.

A fresh process keeps one contender's threads, caches and garbage out of another's time, and makes peak memory mean
something. What a contender reports is its own measurement; starting Python is no part of it.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import attrs

ROOT: Final = Path(__file__).resolve().parent.parent
_PATIENCE: Final = 900.0


@attrs.frozen
class Line:
    """One row of the table: a figure of ours beside somebody else's. Without ``bar`` it only informs."""

    bar_id: str
    #: The store that was measured.
    store: str
    what: str
    against: str
    ours: str
    theirs: str
    ratio: float | None = None
    bar: float | None = None
    #: The bar is a ceiling (growth, memory) and not a floor.
    ceiling: bool = False
    note: str = ""
    #: Nothing was measured because something broke; ``note`` says what.
    failed: bool = False

    @property
    def key(self) -> str:
        """Its name in ``ratios.json``."""
        return f"{self.bar_id} {self.store}, {self.what} / {self.against}"

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; ``None`` when there is none, or nothing was measured."""
        if self.ratio is None or self.bar is None:
            return None
        return self.ratio <= self.bar if self.ceiling else self.ratio >= self.bar


@attrs.frozen
class Absent:
    """A rival that could not be measured because it is not installed."""

    name: str

    def line(self, bar_id: str, store: str, what: str, against: str, bar: float | None) -> Line:
        """The row that says so."""
        return Line(bar_id, store, what, against, "", "", bar=bar, note=f"{self.name} is not installed: make bench installs it")


class ContenderFailed(Exception):
    """A contender's process ended with an error; its last words are in the message."""


def alone(contender: str, **arguments: Any) -> dict[str, Any]:
    """Run ``module:function`` (below ``benchmarks``) in a fresh process; its result, with ``peak_mb`` added.

    Raises ``ContenderFailed`` when it fails or takes longer than 15 minutes.
    """
    try:
        done = subprocess.run(_command(contender, arguments), cwd=ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as late:
        raise ContenderFailed(f"{contender} took longer than {_PATIENCE:.0f} s with {arguments}") from late
    if done.returncode != 0:
        raise ContenderFailed(f"{contender} with {arguments} ended with exit code {done.returncode}:\n{done.stderr[-2_000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def together(contenders: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Run several contenders at the same time, each in a fresh process; their results, in order.

    Each of them calls ``ready`` when it has prepared itself, and goes on from there when all have. Raises ``ContenderFailed``.
    """
    with ExitStack() as held:
        children = []
        for contender, arguments in contenders:
            said = held.enter_context(tempfile.TemporaryFile("w+"))
            started = subprocess.Popen(_command(contender, arguments), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
            child = held.enter_context(started)
            held.callback(child.kill)  # before it is waited for, when another one has failed
            children.append((child, said))

        def give_up() -> None:
            for child, _ in children:
                child.kill()

        late = threading.Timer(_PATIENCE, give_up)
        held.callback(late.cancel)
        late.start()
        for child, _ in children:
            assert child.stdout is not None
            child.stdout.readline()
        for child, _ in children:
            assert child.stdin is not None
            with suppress(BrokenPipeError):  # it has failed, and says why below
                child.stdin.write("go\n")
                child.stdin.flush()
        results = []
        for (child, said), (contender, arguments) in zip(children, contenders, strict=True):
            out, _ = child.communicate()
            if child.returncode != 0:
                said.seek(0)
                raise ContenderFailed(f"{contender} with {dict(arguments)} ended with exit code {child.returncode}:\n{said.read()[-2_000:]}")
            results.append(json.loads(out.splitlines()[-1]))
        return results


def ready() -> None:
    """Of a contender that runs together with others: wait until all of them are."""
    print("ready", flush=True)
    sys.stdin.readline()


def ready_at() -> dict[str, Any]:
    """A contender that only says when it was ready, and when all were; seconds of a clock that all processes share."""
    prepared = time.perf_counter()
    ready()
    return {"prepared": prepared, "went": time.perf_counter()}


def _command(contender: str, arguments: Mapping[str, Any]) -> list[str]:
    return [sys.executable, "-m", "benchmarks.measuring", contender, json.dumps(arguments)]


def in_turns(contenders: Mapping[str, Callable[[int], float]], rounds: int, told: Callable[[str], None]) -> dict[str, float]:
    """The best figure (the largest) of each contender over ``rounds`` rounds in which each had one go."""
    best: dict[str, float] = {}
    for turn in range(rounds):
        for name, measure in contenders.items():
            told(f"round {turn + 1} of {rounds}: {name}")
            best[name] = max(best.get(name, 0.0), measure(turn))
    return best


def installed(module: str) -> bool:
    """Whether ``module`` can be imported here."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is not None and module.startswith(missing.name):
            return False
        raise
    return True


def peak_mb() -> float:
    """The most memory that this program has held, in MB of 1,000,000 bytes.

    On Linux ``ru_maxrss`` begins with what the parent held when it started us, so the kernel's own mark is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (each for each in status.read_text("utf-8").splitlines() if each.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def main() -> None:
    """The contender's process: ``python -m benchmarks.measuring MODULE:FUNCTION JSON``."""
    place, arguments = sys.argv[1:]
    module, _, function = place.partition(":")
    result = getattr(importlib.import_module(f"benchmarks.{module}"), function)(**json.loads(arguments))
    print(json.dumps({**result, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main()
