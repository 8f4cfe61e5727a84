"""The harness: starts runs, and puts them away when the test is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Self

from ..app import App
from ..defining import Agent
from ..tools import Tool
from .clock import VirtualClock
from .runs import Run, boundaries


class Harness:
    """Starts apps in memory, on a clock of their own. A context manager; in pytest it is the fixture ``harness``."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Names of the points at which a run can die, in the order in which one input meets them."""
        return boundaries()

    def start(
        self,
        app: App | Agent,
        *,
        crash_at: str | Iterable[str] = (),
        models: Any = None,
        tools: Mapping[Tool | str, Any] | None = None,
        clock: VirtualClock | None = None,
        patience: timedelta = timedelta(seconds=20),
    ) -> Run:
        """A run of ``app``, on which nothing has happened.

        ``crash_at``: a boundary at which it dies once, ``"settled"`` or ``"settled:3"`` for the third time, or several.
        ``models``: a list of answers, a dict by prompt, a function of the request, or a client; the app's own when absent.
        ``tools``: what stands in for tools, by tool or name: a value, ``results(…)``, an exception or a function.
        ``patience``: real time in which it must come to rest. Raises ``ValueError`` or ``UnknownTool``.
        """
        run = Run(app, models=models, tools=tools, clock=clock, patience=patience.total_seconds())
        self._runs.append(run)
        for spec in [crash_at] if isinstance(crash_at, str) else crash_at:
            boundary, colon, count = spec.partition(":")
            if colon and not count.isdecimal():
                raise ValueError(f"crash_at={spec!r}: behind the colon stands which time it is reached, for example {boundary}:2")
            run.crash_at(boundary, int(count or 1))
        return run

    def close(self) -> None:
        """Close the log of every run."""
        for run in self._runs:
            run.close()
        self._runs.clear()
