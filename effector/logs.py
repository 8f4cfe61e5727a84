"""What an effector of its own writes on stderr: JSON, a line an event; key=value where a person looks at it.

A line about an intent names it, its stream, key, tool and attempt. No line holds arguments or results. Of a failure of a tool it
holds the type alone, because the text may repeat either; the whole failure stands in the log, with the outcome.
"""

from __future__ import annotations

import sys
import time
from collections.abc import MutableMapping
from typing import Any, Final, TextIO

import structlog

from ..eventlog.console import masked
from ..eventlog.errors import LogError
from .lines import Lines
from .outbox import Pending
from .phases import Outcome
from .watching import Watching

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_OURS: Final = ("DedupError", "BusError", "SinkFailed")
"""Names of trees of errors that are ours, too: whoever follows the log does not load them."""
_LONGEST: Final = 1_000
_SAME_AGAIN: Final = 10.0
"""Seconds until the same trouble is told again."""


def logger(level: str = "info", file: TextIO | None = None, **bound: Any) -> Any:
    """A logger of its own, which changes nothing for the process and never raises; ``bound`` stands in every line."""
    out = file or sys.stderr
    look: Any = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False)
    if not out.isatty():
        look = structlog.processors.JSONRenderer(ensure_ascii=False, sort_keys=False)
    chain = [structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _masked, look]
    lines: Any = Lines(out)
    wrapper = structlog.make_filtering_bound_logger(_LEVELS[level])
    return structlog.wrap_logger(structlog.WriteLogger(lines), processors=chain, wrapper_class=wrapper, context_class=dict, **bound)


def _masked(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in line.items():
        if isinstance(value, str):
            line[name] = masked(value[:_LONGEST])
    return line


def of(pending: Pending) -> dict[str, Any]:
    """What every line about an intent holds."""
    stream = pending.stream
    key = stream.partition("-")[2]
    attempt = pending.own_attempt or pending.attempts
    return {"intent_id": pending.intent.intent_id, "stream": stream, "key": key, "tool": pending.intent.tool, "attempt": attempt}


def fault(problem: BaseException) -> dict[str, str]:
    """An error as a line holds it: its text only where it is ours."""
    ours = isinstance(problem, LogError | OSError) or any(base.__name__ in _OURS for base in type(problem).__mro__)
    return {"error": type(problem).__name__, **({"text": str(problem)} if ours else {})}


class LogLines(Watching):
    """Every step of every intent, and the troubles of every part."""

    def __init__(self, log: Any, level: str = "debug") -> None:
        """``level``: what ``log`` leaves out below it is not put together either."""
        self._log = log
        self._debug, self._info = _LEVELS[level] <= _LEVELS["debug"], _LEVELS[level] <= _LEVELS["info"]
        self._told: dict[tuple[str, str, str], float] = {}

    def attempted(self, pending: Pending) -> None:
        if self._debug:
            self._log.debug("attempted", **of(pending))

    def called(self, pending: Pending, outcome: Outcome, seconds: float) -> None:
        if self._debug:
            self._log.debug("called", **of(pending), status=outcome.status, seconds=round(seconds, 6))

    def postponed(self, pending: Pending, outcome: Outcome) -> None:
        failure = {"failure": outcome.failure.type} if outcome.failure is not None else {}
        self._log.warning("postponed", **of(pending), **failure, retry_at=pending.not_before)

    def settled(self, pending: Pending, outcome: Outcome) -> None:
        if outcome.status == "OK" and not self._info:
            return
        failure = {"failure": outcome.failure.type} if outcome.failure is not None else {}
        tell = self._log.info if outcome.status == "OK" else self._log.warning
        tell("settled", **of(pending), status=outcome.status, **failure)

    def distrusted(self, pending: Pending, why: str) -> None:
        self._log.error("intent is not authentic", **of(pending), reason=why)

    def refused(self, pending: Pending, outcome: Outcome) -> None:
        self._log.warning("settlement refused", **of(pending), status=outcome.status, reason="it had an outcome already")

    def lost(self, stream: str, pending: Pending | None) -> None:
        about = of(pending) if pending is not None else {"stream": stream, "key": stream.partition("-")[2]}
        self._log.warning("lease lost", **about)

    def busy(self, stream: str) -> None:
        if self._debug:
            self._log.debug("busy", stream=stream, key=stream.partition("-")[2])

    def handed_back(self, stream: str) -> None:
        if self._debug:
            self._log.debug("handed back", stream=stream, key=stream.partition("-")[2])

    def abandoned(self, pending: Pending, seconds: float) -> None:
        self._log.error("tool deaf to its timeout", **of(pending), seconds=round(seconds, 3))

    def left(self, pending: Pending) -> None:
        self._log.warning("left to its lease", **of(pending))

    def repeated(self, pending: Pending, status: str) -> None:
        self._log.info("delivered again", **of(pending), status=status)

    def set_aside(self, partition: int, offset: int, kind: str, why: str) -> None:
        self._log.error("dead letter", partition=partition, offset=offset, kind=kind)

    def hindered(self, pending: Pending, doing: str, problem: BaseException) -> None:
        if self._is_new(doing, problem, pending.intent.intent_id):
            self._log.warning("trouble", doing=doing, **of(pending), **fault(problem))
        self._is_new(doing, problem)  # it is told as ``trouble`` next, and stands here already

    def left_alone(self, stream: str, doing: str, problem: BaseException) -> None:
        if self._is_new(doing, problem):  # and so it is not told as ``trouble`` next
            self._log.error("stream left alone", stream=stream, key=stream.partition("-")[2], **fault(problem))

    def trouble(self, doing: str, problem: BaseException) -> None:
        """Something failed; the same again within ten seconds is not told."""
        if self._is_new(doing, problem):
            self._log.warning("trouble", doing=doing, **fault(problem))

    def _is_new(self, doing: str, problem: BaseException, intent_id: str = "") -> bool:
        same, now = (doing, type(problem).__name__, intent_id), time.monotonic()
        if now - self._told.get(same, -_SAME_AGAIN) < _SAME_AGAIN:
            return False
        if len(self._told) > 1_000:
            self._told.clear()
        self._told[same] = now
        return True
