"""The calls that a run makes on its log, made again on another one by nobody: how much of the time is the log's.

What remains of a worker, or of an effector, when it decides nothing, encodes nothing and calls nothing: leases are taken, streams and the
tail are read, and the same events appended in the same batches, one call after the other. No engine that keeps the same promises in
the same visits is faster. Renewals and hand-backs, of which there are few, are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from intentlog.eventlog import AppendRequest, EventLog
from intentlog.eventlog.clock import SECOND

_OF_THE_LOG: Final = ("append_batch", "rows_of", "last_position", "read_all")
_OF_THE_SCHEDULE: Final = ("claim_due", "acquire", "next_wake")
_LAZY: Final = "read_all"
_LEASE: Final = 60 * SECOND


class Call(NamedTuple):
    """One call, by the method's name."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]


class Heard:
    """A log that notes what is asked of it, in the order in which it was answered."""

    def __init__(self, log: EventLog) -> None:
        self.calls: list[Call] = []
        self.schedule = _Noted(log.schedule, _OF_THE_SCHEDULE, self.calls)
        self._log = _Noted(log, _OF_THE_LOG, self.calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class _Noted:
    def __init__(self, noted: Any, names: Sequence[str], calls: list[Call]) -> None:
        self._noted, self._names, self._calls = noted, names, calls

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._noted, name)
        if name not in self._names:
            return method

        def call(*arguments: Any, **options: Any) -> Any:
            answer = method(*arguments, **options)
            if name == _LAZY:
                answer = iter(list(answer))
            self._calls.append(Call(name, arguments, options))
            return answer

        return call


def retell(calls: Sequence[Call], log: EventLog) -> float:
    """Seconds that ``calls`` take on ``log``, which holds what the other one held before them. Raises ``RuntimeError`` when one ends otherwise."""
    tokens: dict[tuple[str, str], int] = {}
    began, ours = time.perf_counter(), 0.0
    for name, arguments, options in calls:
        if name == "append_batch":
            since = time.perf_counter()
            requests = [_fenced(request, tokens) for request in arguments[0]]
            ours += time.perf_counter() - since
            _check(log.append_batch(requests))
        elif name in _OF_THE_SCHEDULE:
            answer = getattr(log.schedule, name)(*arguments, **{**options, **_now(log, options)})
            tokens.update(_given(name, arguments, answer))
        else:
            answer = getattr(log, name)(*arguments, **options)
            for _ in answer if name == _LAZY else ():
                pass
    return time.perf_counter() - began - ours


def _now(log: EventLog, options: Mapping[str, Any]) -> dict[str, int]:
    now = log.clock()
    return {name: moment for name, moment in (("now", now), ("until", now + _LEASE)) if name in options}


def _given(name: str, arguments: tuple[Any, ...], answer: Any) -> Iterator[tuple[tuple[str, str], int]]:
    """The tokens that a call of the schedule gave, by queue and name."""
    if name == "claim_due":
        yield from (((claim.queue, claim.name), claim.token) for claim in answer)
    elif name == "acquire":
        yield from (((arguments[0], held), token) for held, token in answer.items())


def _fenced(request: AppendRequest, tokens: Mapping[tuple[str, str], int]) -> AppendRequest:
    """``request`` under the tokens of this log."""
    return attrs.evolve(request, fences=tuple(attrs.evolve(fence, token=tokens[fence.queue, fence.name]) for fence in request.fences))


def _check(outcomes: Sequence[Any]) -> None:
    refused = next((outcome for outcome in outcomes if isinstance(outcome, BaseException)), None)
    if refused is not None:
        raise RuntimeError("an append that had been taken was refused when it was made again") from refused


def listening(log: EventLog, run: Callable[[Any], object]) -> list[Call]:
    """The calls that ``run`` makes on ``log``."""
    heard = Heard(log)
    run(heard)
    return heard.calls
