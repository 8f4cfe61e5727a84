"""What a replica stands on: where its intents come from and its outcomes go. A log (``on_log``), or a bus with a dedup store (``bus.on_bus``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from ..agents.signing import KeyRing, Verifier
from ..eventlog.clock import Clock
from .keeping import Keep, Part
from .settings import Settings
from .tool_registry import Registry
from .watching import Watching

QUIET = 60.0
"""Seconds without a sign of life after which a part counts as stuck, unless it is said otherwise."""


@attrs.frozen(kw_only=True, eq=False)
class Making:
    """What a replica gives to its engine."""

    settings: Settings
    registry: Registry
    owner: str
    watching: Watching
    on_error: Callable[[str, BaseException], None]
    boundary: Callable[[str, str], None]
    verifier: Verifier | None
    keys: KeyRing | None
    #: A logger.
    lines: Any
    #: ``metrics.Metrics``, where it can be had.
    metrics: Any


class Engine(Protocol):
    """What carries out intents, as a replica sees it."""

    @property
    def active(self) -> int:
        """Keys, or partitions, in flight."""
        ...

    @property
    def calling(self) -> int:
        """Calls of users' code under way."""
        ...

    def report(self) -> dict[str, Any]:
        """What health says beyond the parts; from any thread."""
        ...

    def beside(self) -> Mapping[str, Part]:
        """Parts that run beside it, by the names they have in health."""
        ...

    async def run(self, keep: Keep) -> None:
        """Serve until ``stop``."""
        ...

    def stop(self) -> None:
        """Take no more; ``run`` returns when what is under way has ended or its grace is over."""
        ...

    async def idle(self) -> bool:
        """Whether nothing is left to do."""
        ...

    def close(self) -> None:
        """Let go of what it has opened. Blocking."""
        ...


class Ground(Protocol):
    """Opened, and checked against the settings."""

    @property
    def clock(self) -> Clock:
        """What moments are judged by."""
        ...

    def told(self) -> dict[str, Any]:
        """Where it is, for the first line: credentials masked."""
        ...

    def quiet(self, settings: Settings) -> dict[str, float]:
        """The parts that engines on it have, and for how many seconds each may be silent."""
        ...

    def engine(self, making: Making) -> Engine:
        """An engine, not yet running."""
        ...

    def close(self) -> None:
        """Close what was opened."""
        ...
