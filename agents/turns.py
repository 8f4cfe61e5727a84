"""One claimed stream, served: its due timers fired, its turn run, its append made.

The crash argument, boundary by boundary (``Boundary`` names are those tests and users may crash at):

``model.answered``   the provider answered, the journal does not have it: the one window in which a call may be repeated (S-4.10)
``model.journalled`` durable before the agent sees it: a re-run gets this answer and asks nobody (S-4.1)
``turn.decided``     everything staged is in memory only: a crash leaves nothing, and the stream is still due (S-3.2)
``turn.appended``    all of it is durable, in one append, with the next wake-up and the lease's end
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from ..eventlog.errors import EventIdConflict, LeaseLost, LogError, Undecodable, WrongExpectedVersion
from ..eventlog.events import Row
from ..eventlog.log import AppendRequest, Claim, EventLog
from . import facts
from .activation import run_turn
from .app import App
from .appends import Appends, only_arrivals
from .committer import Committer
from .context import ActivationContext
from .errors import DefinitionError, ImpossibleHistory, Superseded, TurnTimedOut
from .lifecycle import ActivationState
from .models import idempotency_key
from .requests import NeedModel, NeedRead, Request, TurnEnd
from .run import Activation
from .streams import Folder, StreamState

Boundary: TypeAlias = Callable[[str, str], None]
"""Called with a boundary's name and the stream, at every point where a crash has a meaning."""


_WAITING = frozenset({ActivationState.SUSPENDED, ActivationState.PARKED})


def no_boundary(name: str, stream: str) -> None:
    """Goes on."""


@attrs.frozen(eq=False)
class Turns:
    """Serves claimed streams for a worker."""

    app: App
    log: EventLog
    committer: Committer
    appends: Appends
    folders: Mapping[str, Folder]
    boundary: Boundary
    snapshot_every: int

    def folded(self, state: StreamState, rows: Sequence[Row]) -> StreamState | LogError | ImpossibleHistory:
        """``state`` with ``rows`` taken in, or why it cannot be."""
        try:
            return self.folders[state.stream.split("-", 1)[0]].fold(state, rows)
        except (Undecodable, ImpossibleHistory) as problem:
            return problem

    async def serve(self, claim: Claim, state: StreamState | Exception) -> int:
        """Do what the stream needs now and hand the lease back; how many turns were committed (0 or 1)."""
        try:
            if isinstance(state, Exception):
                await self._block(claim, state)
                return 0
            return await self._serve(claim, state)
        except Superseded:
            return 0

    async def _block(self, claim: Claim, problem: Exception) -> None:
        version = getattr(problem, "version", -1)
        failure = facts.Failure(type(problem).__name__, str(problem))
        await self.committer.commit(self.appends.blocked(claim, version, failure))

    async def _serve(self, claim: Claim, state: StreamState) -> int:
        now = self.log.clock()
        activation = state.run.current
        if activation is not None and activation.state is ActivationState.SUSPENDED:
            await self._fire_timers(claim, state, activation, now)
        if activation is None or activation.state in _WAITING or activation.retry_at > now:
            await self._commit(claim, state, lambda fresh: self.appends.hand_back(claim, fresh.version, fresh.run))
            return 0
        return await self._turn(claim, state, activation, now)

    async def _fire_timers(self, claim: Claim, state: StreamState, activation: Activation, now: int) -> None:
        fired = [facts.TimerFired(activation.seq, timer, at) for timer, at in sorted(activation.timers.items(), key=lambda each: each[1]) if at <= now]
        if not fired and activation.deadline <= now:
            fired = [facts.TimerFired(activation.seq, "", activation.deadline)]
        if fired:
            await self._append(claim, self.appends.timers(claim, state.version, activation, fired))
            for fact in fired:
                state.run.apply(fact, now)
                state.version += 1

    async def _turn(self, claim: Claim, state: StreamState, activation: Activation, now: int) -> int:
        definitions = self.app.definitions[claim.name.split("-", 1)[0]]
        ctx: ActivationContext[Any] = ActivationContext(definitions, state.run, activation, state.state, claim.name, activation.turn_now or now)
        limit = definitions.agent.turn_timeout.total_seconds()
        try:
            core = run_turn(ctx)
            async with asyncio.timeout(limit) as timer:
                end = await self._drive(claim, state, ctx, core)
            self.boundary("turn.decided", claim.name)
            await self._commit(claim, state, lambda fresh: self.appends.turn(claim, fresh.version, fresh.run, fresh.run.open[activation.seq], end.staged))
        except Exception as problem:
            if isinstance(problem, LogError) and not isinstance(problem, Undecodable) and _is_store(problem):
                raise
            if isinstance(problem, TimeoutError) and timer.expired():
                problem = TurnTimedOut(f"the turn ran longer than {limit:g} s, the turn_timeout of agent {definitions.agent.name}")
            await self._fail(claim, state, activation, ctx, problem)
            return 0
        self.boundary("turn.appended", claim.name)
        await self._snapshot(state)
        return 1

    async def _drive(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], core: Generator[Request, Any, TurnEnd]) -> TurnEnd:
        """Answer the core's requests until it returns."""
        try:
            request = next(core)
            while True:
                try:
                    answer = await (self._model(claim, state, ctx, request) if isinstance(request, NeedModel) else self._read(claim, state, ctx, request))
                except Exception as problem:
                    request = core.throw(problem)
                else:
                    request = core.send(answer)
        except StopIteration as stop:
            end: TurnEnd = stop.value
            return end
        finally:
            core.close()

    async def _model(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], need: NeedModel) -> Any:
        """Ask the provider, then journal, then answer with what was stored (S-4.1)."""
        client = self.app.models
        if client is None:
            raise DefinitionError("the agent calls a model, but the app has no model client: App(…, models=…)")
        response = await client.complete(need.request, idempotency_key=idempotency_key(claim.name, ctx.seq, need.step, need.digest))
        self.boundary("model.answered", claim.name)
        cached = facts.ModelCallCached(ctx.seq, need.step, ctx.now_us, need.digest, need.request, response)
        stored = await self._journal(claim, state, ctx.seq, cached)
        self.boundary("model.journalled", claim.name)
        return stored.response

    async def _read(self, claim: Claim, state: StreamState, ctx: ActivationContext[Any], need: NeedRead) -> Any:
        """Run a read-only tool, journal what it returned or raised, answer with what was stored (S-4.7)."""
        value, failure = None, None
        codec = self.app.codec
        try:
            async with asyncio.timeout(need.timeout):
                value = await need.call() if need.is_async else await asyncio.to_thread(need.call)
        except Exception as problem:
            failure = failure_of(problem)
        if failure is None:
            value = codec.tree(codec.encode_value(value, need.returns if need.returns is not type(None) else Any))
        cached = facts.ToolCallCached(ctx.seq, need.index, ctx.now_us, need.tool, need.digest, need.args, value, failure)
        return await self._journal(claim, state, ctx.seq, cached)

    async def _journal(self, claim: Claim, state: StreamState, seq: int, cached: Any) -> Any:
        request = await self._commit(claim, state, lambda fresh: self.appends.journal(claim, fresh.version, fresh.run.open[seq], cached), keep=True)
        event = request.parts[0].events[0]
        stored = self.app.codec.decode(event.type, event.schema, event.data)
        state.run.apply(stored, 0)
        state.version += 1
        return stored

    async def _fail(self, claim: Claim, state: StreamState, activation: Activation, ctx: ActivationContext[Any], problem: Exception) -> None:
        step, index = ctx.position()
        definitions = self.app.definitions[claim.name.split("-", 1)[0]]

        def build(fresh: StreamState) -> AppendRequest:
            attempt = fresh.run.open[activation.seq].failures + 1
            retry_at = definitions.agent.retry.retry_at(attempt, problem, self.log.clock())
            failed = facts.ActivationFailed(activation.seq, activation.input.input_id, attempt, failure_of(problem), step, index, retry_at, retry_at is None and definitions.agent.on_parked == "wait")
            return self.appends.failure(claim, fresh.version, fresh.run, fresh.run.open[activation.seq], failed)

        # A fold that a refused append was built on has moved past the log; a failure is built on a fresh one.
        await self._commit(claim, await self._reload(state), build)

    async def _commit(self, claim: Claim, state: StreamState, build: Callable[[StreamState], AppendRequest], *, keep: bool = False) -> AppendRequest:
        """Append what ``build`` makes of the state, behind arrivals if need be; raises ``Superseded`` when the key was lost.

        The append is atomic and versioned, so a crash anywhere here leaves either all of it or nothing (S-3.2).
        """
        while True:
            base = state.version
            request = build(state)
            outcome = await self.committer.commit(request)
            if not isinstance(outcome, LogError):
                if not keep:
                    state.version = base + len(request.parts[0].events)
                return request
            if not isinstance(outcome, WrongExpectedVersion) or not only_arrivals(outcome.events):
                self._lost(outcome)
            fresh = await self._reload(state)
            state.run, state.state, state.version = fresh.run, fresh.state, fresh.version

    async def _append(self, claim: Claim, request: AppendRequest) -> None:
        outcome = await self.committer.commit(request)
        if isinstance(outcome, LogError):
            self._lost(outcome)

    def _lost(self, outcome: LogError) -> None:
        if isinstance(outcome, LeaseLost | WrongExpectedVersion | EventIdConflict):
            raise Superseded(str(outcome))
        raise outcome

    async def _reload(self, state: StreamState) -> StreamState:
        folder = self.folders[state.stream.split("-", 1)[0]]

        def load() -> StreamState:
            rows = self.log.rows_of({state.stream: -1}).get(state.stream, [])
            return folder.fold(folder.empty(state.stream), rows)

        return await asyncio.get_running_loop().run_in_executor(None, load)

    async def _snapshot(self, state: StreamState) -> None:
        if self.snapshot_every and state.version - state.snapshot_version >= self.snapshot_every:
            fresh = await self._reload(state)
            snapshot = self.folders[state.stream.split("-", 1)[0]].snapshot(fresh)
            await asyncio.get_running_loop().run_in_executor(None, self.log.snapshots.save, state.stream, snapshot)


def _is_store(problem: LogError) -> bool:
    from ..eventlog.errors import LogUnavailable, StoreSchemaError

    return isinstance(problem, LogUnavailable | StoreSchemaError)


def failure_of(problem: BaseException) -> facts.Failure:
    """An exception as data; a message that cannot be had is replaced by why."""
    try:
        message = str(problem)
    except Exception as fault:  # a user's __str__ may raise anything, and the failure must still be recorded
        message = f"(its text cannot be had: {type(fault).__name__})"
    frames = traceback.extract_tb(problem.__traceback__)[-3:]
    return facts.Failure(type(problem).__name__, message[:20_000], " ← ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames)))


