"""One claimed stream, served: its due timers fired, its turn run, its append made. A plan, as a generator of actions.

Rules of this file: nothing waits and nothing is read from outside. ``Turns.serve`` yields what the shell is to do
(``Commit``, ``Ask``, ``Load``, ``Keep``) and is sent what came of it; the worker's lanes are the shell.

The crash argument, boundary by boundary (``Boundary`` names are those tests and users may crash at):

``model.answered``   the provider answered, the journal does not have it: the one window in which a call may be repeated (S-4.10)
``model.journalled`` durable before the agent sees it: a re-run gets this answer and asks nobody (S-4.1)
``turn.decided``     everything staged is in memory only: a crash leaves nothing, and the stream is still due (S-3.2)
``turn.appended``    all of it is durable, in one append, with the next wake-up and the lease's end
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ..eventlog.clock import Clock
from ..eventlog.codec import preencoded
from ..eventlog.errors import EventIdConflict, LeaseLost, LogError, LogUnavailable, StoreSchemaError, Undecodable, WrongExpectedVersion
from ..eventlog.events import Row
from ..eventlog.log import AppendRequest, Claim, Duplicate, Outcome
from . import facts
from .activation import run_turn
from .app import App
from .appends import Appends, only_arrivals
from .context import ActivationContext
from .definitions import Definitions
from .errors import AggregateContended, AggregateExists, DefinitionError, ImpossibleHistory, InputConflict, Superseded, TurnTimedOut
from .evolve import take
from .failures import failure_of
from .lifecycle import ActivationState
from .loads import forget_loads
from .models import ModelResponse, idempotency_key
from .plans import Action, Ask, Commit, Fetch, Keep, Load, Plan
from .reading import run_read
from .requests import NeedModel, NeedRead, TurnEnd
from .run import CONCURRENT, Activation, next_attention
from .streams import Folder, StreamState

Boundary: TypeAlias = Callable[[str, str], None]
"""Called with a boundary's name and the stream, at every point where a crash has a meaning."""

_MOST_TURNS: Final = 100
"""Turns of one key in a row before others get its place."""
_MOST_MOVES: Final = 20
"""How often a turn is run again because others changed what it had loaded, before it waits for its next attempt."""
_WAITING = frozenset({ActivationState.SUSPENDED, ActivationState.PARKED})


def no_boundary(name: str, stream: str) -> None:
    """Goes on."""


class _Moved(Exception):
    """Somebody else changed an aggregate that the turn changes too; nothing of the turn was committed."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.stream = stream


@attrs.define(eq=False)
class Turns:
    """Serves claimed streams for a worker."""

    app: App
    clock: Clock
    appends: Appends
    folders: Mapping[str, Folder]
    boundary: Boundary
    snapshot_every: int
    #: From this many events of one activation on ``grown`` hears of it (stream, seq, events); 0 for never.
    warn_history: int = 0
    grown: Callable[[str, int, int], None] = lambda stream, seq, events: None
    #: The worker is stopping: end lanes after the turn under way.
    draining: bool = False
    #: Looks at the outcomes that a turn would see: an awaitable of what is wrong with them, or of ``None``.
    outcomes: Callable[[StreamState], Awaitable[Exception | None]] | None = None

    def folded(self, state: StreamState, rows: Sequence[Row]) -> StreamState | LogError | ImpossibleHistory:
        """``state`` with ``rows`` taken in, or why it cannot be."""
        try:
            return self.folders[state.stream.split("-", 1)[0]].fold_next(state, rows)
        except (Undecodable, ImpossibleHistory) as problem:
            return problem

    def serve(self, claim: Claim, state: StreamState | Exception) -> Plan:
        """Do what the stream needs now and hand the lease back; returns how many turns were committed (0 or 1).

        Raises ``Superseded`` when the key was lost, and the store's own errors.
        """
        if isinstance(state, Exception):
            yield from self._block(claim, state)
            return 0
        committed = 0
        while True:
            now = self.clock()
            activation = state.run.current
            if activation is not None and (activation.state is ActivationState.SUSPENDED or state.run.while_suspended == CONCURRENT):
                yield from self._fire_timers(claim, state, now)
                if state.run.interrupted is not None:
                    yield from self._interrupt(claim, state)
                activation = state.run.current
            if activation is None or activation.state in _WAITING or activation.retry_at > now:
                yield from self._commit(state, lambda fresh: self.appends.hand_back(claim, fresh))
                return committed
            if self.outcomes is not None and (distrusted := (yield Ask(functools.partial(self.outcomes, state)))) is not None:
                yield from self._block(claim, distrusted)
                return committed
            # A key with more to do keeps its lane and its folded state, instead of being claimed and loaded for each turn.
            last = self.draining or committed >= _MOST_TURNS
            ended = yield from self._turn(claim, state, activation, now, last)
            if not ended:
                return committed
            committed += 1
            if last or next_attention(state.run) != 0:
                return committed

    def _block(self, claim: Claim, problem: Exception) -> Generator[Action, Any, None]:
        """The stream stands still, once and visibly, until somebody has seen to it (S-8.3)."""
        failure = facts.Failure(type(problem).__name__, str(problem))
        outcome = yield Commit(self.appends.blocked(claim, getattr(problem, "version", -1), failure))
        if isinstance(outcome, Duplicate):  # said before, and a duplicate changes no wake-up
            yield Commit(self.appends.silenced(claim))

    def _fire_timers(self, claim: Claim, state: StreamState, now: int) -> Generator[Action, Any, None]:
        while (due := next(((each, fired) for each in state.run.waiting() if (fired := _due(each, now))), None)) is not None:
            activation, fired = due
            outcome: Outcome = yield Commit(self.appends.timers(claim, state.version, activation, fired))
            if isinstance(outcome, LogError):  # an outcome arrived at the same moment; look again with it
                yield from self._behind(state, outcome)
                continue
            for fact in fired:
                state.version += 1
                state.run.at = state.version
                take(state.run, fact, now)

    def _interrupt(self, claim: Claim, state: StreamState) -> Generator[Action, Any, None]:
        """Cancel the suspended activation for the input behind it; its next turn is its clean-up."""
        while (activation := state.run.interrupted) is not None:
            request, cancel = self.appends.interruption(claim, state.version, activation, state.run.open[state.run.line[1]].input)
            outcome: Outcome = yield Commit(request)
            if isinstance(outcome, LogError):  # look again with what arrived
                yield from self._behind(state, outcome)
                continue
            state.version += 1
            state.run.at = state.version
            take(state.run, cancel)

    def _turn(self, claim: Claim, state: StreamState, activation: Activation, now: int, last: bool) -> Plan:
        definitions = self.app.definitions[claim.name.split("-", 1)[0]]
        ctx = _context(definitions, state, activation, now)
        began = activation.began
        seq, folder = activation.seq, self.folders[definitions.agent.name]
        try:
            for moves in itertools.count(1):
                end = yield from self._drive(claim, state, ctx)
                self.boundary("turn.decided", claim.name)
                try:
                    yield from self._append(claim, state, folder, seq, end, last)
                    break
                except _Moved as moved:
                    _check_moved(moved.stream, ctx, moves)
                    ctx = yield from self._again(state, seq, now, definitions)
        except (LogUnavailable, StoreSchemaError):
            raise
        except Exception as problem:
            yield from self._fail(claim, state, seq, ctx, problem, definitions)
            return 0
        self.boundary("turn.appended", claim.name)
        if self.warn_history and state.version - began >= self.warn_history:
            # What waits in line behind it is not its own history.
            history = state.version - began - sum(each.seq != seq and each.began > began for each in state.run.open.values())
            if history >= self.warn_history:
                self.grown(claim.name, seq, history)
        if self.snapshot_every and state.version - state.snapshot_version >= self.snapshot_every:
            yield Keep(claim.name, folder.snapshot(state))
            state.snapshot_version = state.version
        return 1

    def _again(self, state: StreamState, seq: int, now: int, definitions: Definitions) -> Generator[Action, Any, ActivationContext[Any]]:
        """The same turn once more, over what is in the log now."""
        fresh: StreamState = yield Load(state.stream)
        state.take_over(fresh)
        activation = state.run.open.get(seq)
        if activation is None or activation.state in _WAITING:
            raise Superseded(f"{state.stream}: activation {seq} went on elsewhere")
        if self.outcomes is not None and (yield Ask(functools.partial(self.outcomes, state))) is not None:
            raise Superseded(f"{state.stream}: an outcome came that nobody vouches for")  # whoever serves it next says so
        forget_loads(activation)
        ctx = _context(definitions, state, activation, now)
        ctx.reload = True
        return ctx

    def _append(self, claim: Claim, state: StreamState, folder: Folder, seq: int, end: TurnEnd, last: bool) -> Generator[Action, Any, None]:
        """The turn's append, behind what arrived meanwhile."""
        turns = state.run.open[seq].turns
        while True:
            base, activation = state.version, state.run.open.get(seq)
            if activation is None or activation.turns != turns:
                raise Superseded(f"{claim.name}: activation {seq} went on without this worker")
            request = self.appends.turn(claim, state, folder, activation, end, last)
            outcome: Outcome = yield Commit(request, True)
            if not isinstance(outcome, LogError):
                state.version = base + len(request.parts[0].events)
                return
            if isinstance(outcome, EventIdConflict):
                end = yield from self._undisputed(state, base, activation, end, outcome)
            else:
                yield from self._behind(state, outcome)

    def _undisputed(self, state: StreamState, base: int, activation: Activation, end: TurnEnd, outcome: EventIdConflict) -> Generator[Action, Any, TurnEnd]:
        """The turn without what is there already: an input that was sent before; and behind the attempt at an intent that it withdraws.

        Raises ``InputConflict`` for an input whose id was used with another payload (S-2.2), ``Superseded`` when that explains nothing.
        """
        kept = []
        for stream, received in end.sends:
            found: Outcome = yield Commit(self.appends.is_there(stream, received, activation))
            if isinstance(found, EventIdConflict):
                raise InputConflict(
                    f"ctx.send: input id {received.input_id!r} was used on {stream} before with another payload; send another input under a new id"
                )
            if not isinstance(found, Duplicate):
                kept.append((stream, received))
        fresh: StreamState = yield Load(state.stream)
        if len(kept) == len(end.sends) and fresh.version == base:
            _lost(outcome)
        state.take_over(fresh)
        return attrs.evolve(end, sends=tuple(kept))

    def _drive(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any]) -> Generator[Action, Any, TurnEnd]:
        """Answer the core's requests until it returns."""
        core = run_turn(ctx)
        try:
            request = next(core)
            while True:
                try:
                    if isinstance(request, NeedModel):
                        answer = yield from self._model(claim, state, ctx, request)
                    elif isinstance(request, NeedRead):
                        answer = yield from self._read(claim, state, ctx, request)
                    else:
                        answer = yield Fetch(request, self.snapshot_every)
                except (TurnTimedOut, LogUnavailable):  # nothing agent code could catch and go on from: the turn is over
                    raise
                except Exception as problem:
                    request = core.throw(problem)
                else:
                    request = core.send(answer)
        except StopIteration as stop:
            end: TurnEnd = stop.value
            return end
        finally:
            core.close()

    def _model(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], need: NeedModel) -> Generator[Action, Any, ModelResponse]:
        """Ask the provider, then journal, then answer with what was stored (S-4.1)."""
        client = self.app.models
        if client is None:
            raise DefinitionError("the agent calls a model, but the app has no model client: App(…, models=…)")
        key = idempotency_key(claim.name, ctx.seq, need.step, need.digest)
        response = yield Ask(lambda: client.complete(need.request, idempotency_key=key))
        self.boundary("model.answered", claim.name)
        cost = ctx._definitions.cost_of(need.request, response)
        encoded: Any = preencoded(need.encoded)  # made for the digest; a request is large
        cached = facts.ModelCallCached(ctx.seq, need.step, ctx.now_us, need.digest, encoded, response, ctx.seen, cost)
        stored = yield from self._journal(claim, state, ctx, cached, lambda: attrs.evolve(cached, request=need.request))  # type: ignore[misc]
        self.boundary("model.journalled", claim.name)
        answer: ModelResponse = stored.response
        return answer

    def _read(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], need: NeedRead) -> Generator[Action, Any, Any]:
        """Run a read-only tool, journal what it returned or raised, answer with what was stored (S-4.7)."""
        value, failure = yield Ask(lambda: run_read(need, self.app.codec))
        cached = facts.ToolCallCached(ctx.seq, need.index, ctx.now_us, need.tool, need.digest, need.args, value, failure, ctx.seen)
        return (yield from self._journal(claim, state, ctx, cached, None))

    def _journal(
        self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], cached: Any, plain: Callable[[], object] | None
    ) -> Generator[Action, Any, Any]:
        loads: tuple[facts.AggregateLoaded, ...] = ()
        if ctx.loads:
            loads, ctx.loads = ctx.loads, ()
        while True:
            base = state.version
            request, stored = self.appends.journal(claim, base, state.run.open[ctx.seq], cached, plain, loads)
            outcome: Outcome = yield Commit(request)
            if not isinstance(outcome, LogError):
                break
            yield from self._behind(state, outcome)
        state.version = base + len(loads) + 1
        for place, fact in enumerate((*loads, stored), base + 1):
            state.run.at = place
            take(state.run, fact)
        return stored

    def _fail(
        self, claim: Claim, state: StreamState, seq: int, ctx: ActivationContext[Any], problem: Exception, definitions: Definitions
    ) -> Generator[Action, Any, None]:
        step, index = ctx.position()
        agent = definitions.agent

        def build(fresh: StreamState) -> AppendRequest:
            activation = fresh.run.open[seq]
            attempt = activation.failures + 1
            retry_at = agent.retry.retry_at(attempt, problem, self.clock())
            holds = retry_at is None and agent.on_parked == "wait"
            failed = facts.ActivationFailed(seq, activation.input.input_id, attempt, failure_of(problem), step, index, retry_at, holds, ctx.now_us, ctx.seen)
            return self.appends.failure(claim, fresh, self.folders[agent.name], activation, failed, ctx.loads)

        # A fold that a refused append was built on has moved past the log; a failure is built on a fresh one.
        fresh: StreamState = yield Load(state.stream)
        yield from self._commit(fresh, build)

    def _commit(self, state: StreamState, build: Callable[[StreamState], AppendRequest]) -> Generator[Action, Any, AppendRequest]:
        """Append what ``build`` makes of the state, behind arrivals if need be; raises ``Superseded`` when the key was lost.

        The append is atomic and versioned, so a crash anywhere here leaves either all of it or nothing (S-3.2).
        """
        while True:
            base = state.version
            request = build(state)
            outcome: Outcome = yield Commit(request)
            if not isinstance(outcome, LogError):
                state.version = base + len(request.parts[0].events)
                return request
            yield from self._behind(state, outcome)

    def _behind(self, state: StreamState, outcome: LogError) -> Generator[Action, Any, None]:
        """Fold in what others appended meanwhile; raises ``Superseded`` unless all of it are arrivals."""
        if isinstance(outcome, WrongExpectedVersion) and outcome.stream != state.stream:
            raise _Moved(outcome.stream)
        if not isinstance(outcome, WrongExpectedVersion) or not only_arrivals(outcome.events):
            _lost(outcome)
        fresh: StreamState = yield Load(state.stream)
        state.take_over(fresh)


def _due(activation: Activation, now: int) -> list[facts.TimerFired]:
    """The timers of a suspended activation whose moment has come, or its deadline when only that has."""
    timers = sorted(activation.timers.items(), key=lambda each: each[1])
    fired = [facts.TimerFired(activation.seq, timer, at) for timer, at in timers if at <= now and timer in activation.waits]
    return fired or ([facts.TimerFired(activation.seq, "", activation.deadline)] if activation.deadline <= now else [])


def _context(definitions: Definitions, state: StreamState, activation: Activation, now: int) -> ActivationContext[Any]:
    seen = activation.turn_seen if activation.turn_now else state.version
    return ActivationContext(definitions, state.run, activation, state.begun_with(activation), state.stream, activation.turn_now or now, seen)


def _check_moved(stream: str, ctx: ActivationContext[Any], moves: int) -> None:
    if stream in ctx.made_new:
        raise AggregateExists(f"{stream} exists already: a new aggregate needs an id of its own. To change the one that is there, load it: await ctx.load(…)")
    if moves >= _MOST_MOVES:
        raise AggregateContended(f"{stream} was changed by others {moves} times while the turn was run; it is tried again later")


def _lost(outcome: LogError) -> None:
    if isinstance(outcome, LeaseLost | WrongExpectedVersion | EventIdConflict):
        raise Superseded(str(outcome))
    raise outcome
