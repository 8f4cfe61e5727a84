"""One recorded turn, run again: the sibling of the worker's driver that never calls out (S-9.1).

Rules of this file: nothing is appended, claimed, asked or called. The core takes every answer that the journal holds by
itself; whatever it still asks for was never recorded, and there is nobody here who could answer.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.activation import run_turn
from ..agents.compare import first_difference
from ..agents.context import ActivationContext
from ..agents.definitions import Definitions
from ..agents.errors import AgentError, Drift, ModelFailed
from ..agents.requests import NeedModel, NeedRead, NeedStream, Request, TurnEnd
from ..agents.run import Activation, RunState
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, LogUnavailable, Unencodable
from ..eventlog.events import Row
from ..eventlog.log import EventLog
from .compare import Encoded
from .errors import BrokenHistory
from .holes import broken, whole

#: The end of ``Drift.place``; what stands before it is a stream, which may hold anything.
_PLACE: Final = re.compile(r", activation \d+, (?P<kind>step|read|turn|event) (?P<number>\d+)(?: \((?P<subject>[^()]*)\))?\Z")


@attrs.frozen
class Rerun:
    """How a turn came out now. Exactly one of ``end``, ``miss`` and ``raised`` says how it stopped."""

    #: What it staged until then, encoded; with the closing fact when it came to its end.
    staged: tuple[Encoded, ...]
    #: (step, index) it had reached.
    position: tuple[int, int]
    #: Recorded answers it was given.
    hits: int
    ended: bool = False
    miss: Request | None = None
    raised: Exception | None = None
    #: The recorded step it left the path at, even when agent code caught that and raised something else.
    drift: Drift | None = None
    #: The first step without an answer that was made to fail (see ``rerun_turn``), and how much was staged before it.
    thrown: Request | None = None
    staged_before: int = 0
    #: Guards (``ctx.patched``) that the code asked about.
    guards_met: frozenset[str] = frozenset()


def rerun_turn(
    definitions: Definitions,
    run: RunState,
    activation: Activation,
    state: Any,
    stream: str,
    now: int,
    seen: int,
    closed_at: tuple[int, int] | None,
    log: EventLog,
    guards: frozenset[str] | None = None,
    code: int = 0,
    failures: Mapping[int, facts.Failure] = MappingProxyType({}),
) -> Rerun:
    """Run the agent's code for one turn over ``run``, whose journal holds what was recorded for it.

    ``closed_at``: the (step, index) the recorded turn ended with, or ``None`` for one that failed. A step below it that
    has no answer is one whose failure the agent's code had handled, for failures of providers are never recorded
    (S-4.6); it fails again. A step beyond it is a miss. Other aggregates are folded from their streams in ``log``, at the
    versions that are recorded. ``guards``: the names of ``ctx.patched`` that the recorded turn passed on the new way; a turn that was
    run before a guard existed passed it on the old one. ``code``: the agent's version it was run under.
    ``failures``: what linear code was told of providers that did not answer, by step.
    """
    ctx: ActivationContext[Any] = ActivationContext(definitions, run, activation, state, stream, now, seen)
    ctx.guards, ctx.version = guards, code or ctx.version
    thrown: Request | None = None
    start, staged_before, core = ctx.position(), 0, run_turn(ctx)
    miss: Request | None = None
    raised: Exception | None = None
    events: tuple[object, ...] = ()
    try:
        request = next(core)
        while True:
            if isinstance(request, NeedStream) and request.version is not None and ctx.fault is None:
                request = _given(core, request, log)
                continue
            if ctx.fault is not None or not _was_taken(request, closed_at):
                miss = request
                break
            if thrown is None:
                thrown, staged_before = request, len(ctx.staged)
            known = failures.get(request.step) if isinstance(request, NeedModel) else None
            request = core.throw(definitions.exception(known) if known is not None else _failure(request))
    except StopIteration as stop:
        events = stop.value.staged
    except BrokenHistory:  # of a stream that it loaded: nothing can be said of this turn
        raise
    except Exception as problem:  # whatever agent code raises is the turn's failure, here as in the worker
        raised = problem
    finally:
        core.close()
    if ctx.fault is not None:
        miss, raised = None, raised or (ctx.fault if isinstance(ctx.fault, Exception) else None)
    ended = miss is None and raised is None
    staged, problem_found = _encoded(definitions.codec, events if ended else ctx.staged)
    if ended and problem_found is not None:  # the worker meets it when it makes the append, and the turn fails with it
        ended, raised = False, problem_found
    drift = next((each for each in (ctx.fault, raised) if isinstance(each, Drift)), None)
    hits, met = _hits(activation, start, ctx.position()), frozenset(vars(ctx).get("_patches", ()))
    return Rerun(staged, ctx.position(), hits, ended, miss, raised, drift, thrown, staged_before, met)


def _was_taken(request: Request, closed_at: tuple[int, int] | None) -> bool:
    if closed_at is None:
        return False
    return request.index < closed_at[1] if isinstance(request, NeedRead) else request.step < closed_at[0]


class _Whole:
    """A log whose streams raise ``BrokenHistory`` where a version is missing."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        reached = after
        for rows in whole(stream, self._log.rows(stream, after=after, upto=upto), after):
            reached += len(rows)
            yield rows
        if upto is not None and reached < upto:
            raise broken(stream, reached + 1, upto + 1, stands=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


def _given(core: Generator[Request, Any, TurnEnd], request: NeedStream, log: EventLog) -> Request:
    """The next request after a load was answered from the log, or failed as it did when it was live."""
    try:
        loaded = request.read(_Whole(log), request.version, 0)
    except BrokenHistory:
        raise
    except (LogError, AgentError) as problem:
        return core.throw(problem)
    return core.send(loaded)


def _failure(request: Request) -> Exception:
    if isinstance(request, NeedModel):
        return ModelFailed(f"no answer to step {request.step} is recorded: the provider had failed")
    if isinstance(request, NeedStream):
        return LogUnavailable(f"no version of {request.stream} is recorded for step {request.step}: it could not be loaded")
    return Unencodable(f"no value of read {request.index} ({request.tool}) is recorded: it could not be")


def _encoded(codec: Codec, events: Any) -> tuple[tuple[Encoded, ...], LogError | None]:
    done: list[Encoded] = []
    try:
        for event in events:
            done.append(codec.encode(event))
    except LogError as problem:
        return tuple(done), problem
    return tuple(done), None


def _hits(activation: Activation, start: tuple[int, int], end: tuple[int, int]) -> int:
    models, tools = activation.models, activation.tools
    return sum(step in models for step in range(start[0], end[0])) + sum(index in tools for index in range(start[1], end[1]))


@attrs.frozen
class Described:
    """A drift or a miss in words, and which journal entry it is about: ``("model", step)``, ``("read", index)``."""

    entry: tuple[str, int]
    step: int
    subject: str
    recorded: str
    decided: str
    field: str = ""


def describe_drift(drift: Drift) -> Described:
    """Where a drift happened."""
    found = _PLACE.search(drift.place)
    assert found is not None, drift.place
    number = int(found["number"])
    if found["kind"] in ("turn", "event"):
        return Described((found["kind"], number), -1, f"{found['kind']} {number}", drift.recorded, drift.decided, drift.field)
    if found["kind"] == "read":
        return Described(("read", number), -1, f"read {number}", drift.recorded, drift.decided, drift.field)
    subject = found["subject"] or ("model call" if drift.recorded.startswith("a model call") else "")
    return Described(("model", number), number, subject, drift.recorded, drift.decided, drift.field)


def describe_miss(miss: Request, recorded: str) -> Described:
    """What the turn asks for that was never recorded; ``recorded`` is what stands there instead, if anything."""
    nothing = recorded or "no such step: a replay never calls out"
    if isinstance(miss, NeedModel):
        last = miss.request.messages[-1] if miss.request.messages else {}
        decided = f"a model call ({miss.request.model}) {last.get('content', '')!r:.120}"
        return Described(("model", miss.step), miss.step, "model call", nothing, decided)
    if isinstance(miss, NeedStream):
        return Described(("load", miss.step), miss.step, "load", nothing, f"a load of {miss.stream}")
    return Described(("read", miss.index), -1, f"read {miss.index}", nothing, f"read {miss.tool} {miss.args!r:.120}")


def describe_failure(recorded: facts.Failure, raised: Exception | None) -> tuple[str, str, str]:
    """(recorded, decided, field) of a turn that failed and now does not, or fails otherwise."""
    left = f"failed with {recorded.type}: {recorded.message:.200}"
    if raised is None:
        return left, "the turn ends without a failure", ""
    if type(raised).__name__ != recorded.type:
        return left, f"fails with {type(raised).__name__}: {raised!s:.200}", "failure.type"
    found = first_difference({"message": recorded.message}, {"message": str(raised)})
    return left, f"fails with {type(raised).__name__}: {raised!s:.200}", f"failure.{found.path}"
