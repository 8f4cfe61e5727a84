"""Drives the core through one turn: answers its requests from a script, and keeps what a journal would hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import attrs

from ...eventlog.events import Row
from .. import facts
from ..activation import run_turn
from ..context import ActivationContext
from ..definitions import Definitions
from ..evolve import take
from ..failures import failure_of
from ..intents import fact_id
from ..models import ModelResponse
from ..reading import run_read
from ..requests import NeedModel, NeedRead, Request, TurnEnd
from ..run import RunState
from .answers import as_response, prompt_of
from .apart import apart
from .arrivals import Settled


class _Scripted(Exception):
    """An exception from the script, on its way into agent code."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


@attrs.frozen(eq=False)
class Shelf:
    """Other aggregates' streams, as a log shows them to who folds one: stream → rows."""

    streams: Mapping[str, tuple[Row, ...]]

    def rows(self, stream: str, *, after: int = -1, upto: int | None = None) -> Iterator[Sequence[Row]]:
        """See ``EventLog.rows``."""
        yield [row for row in self.streams.get(stream, ()) if after < row[0] and (upto is None or row[0] <= upto)]

    def added(self, stream: str, events: Iterable[tuple[str, int, bytes]], now: int) -> Shelf:
        """A shelf with these events, ``(type, schema, bytes)``, at the end of one stream."""
        held = list(self.streams.get(stream, ()))
        for kind, schema, encoded in events:
            held.append((len(held), kind, schema, encoded, fact_id(stream, len(held)), now))
        return Shelf({**self.streams, stream: tuple(held)})


@attrs.define(eq=False)
class Driver:
    """One turn's shell."""

    definitions: Definitions
    run: RunState
    answers: Sequence[Any]
    #: Other aggregates' streams.
    others: Shelf
    #: What was journalled, in order.
    journal: list[object] = attrs.field(factory=list)

    def drive(self, ctx: ActivationContext[Any]) -> TurnEnd:
        """Run the turn; raises what it raised, and ``AssertionError`` for an answer that is missing or left over."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        models = [each for each in self.answers if not isinstance(each, Settled)]
        reads = [each for each in self.answers if isinstance(each, Settled)]
        core = run_turn(ctx)
        try:
            request = next(core)
            while True:
                try:
                    answer = self._answer(ctx, request, models, reads)
                except _Scripted as scripted:
                    request = core.throw(scripted.error)
                else:
                    request = core.send(answer)
        except StopIteration as stop:
            end: TurnEnd = stop.value
        finally:
            core.close()
        if models or reads:
            left = ", ".join(f"{each!r:.80}" for each in [*models, *reads])
            raise AssertionError(f"{ctx.stream}: the turn ended, and nobody had asked for {left}")
        return end

    def _answer(self, ctx: ActivationContext[Any], request: Request, models: list[Any], reads: list[Settled]) -> Any:
        __tracebackhide__ = True  # pytest shows the line of the test instead
        if isinstance(request, NeedModel):
            return self._model(ctx, request, models)
        if isinstance(request, NeedRead):
            return self._read(ctx, request, reads)
        shelf: Any = self.others
        try:
            return request.read(shelf, request.version, 0)
        except Exception as problem:  # as in the worker: agent code hears of it
            raise _Scripted(problem) from problem

    def _model(self, ctx: ActivationContext[Any], need: NeedModel, left: list[Any]) -> ModelResponse:
        __tracebackhide__ = True  # pytest shows the line of the test instead
        if not left:
            raise AssertionError(
                f"{ctx.stream}: step {need.step} asks a model and the test has no answer: .answering(…)\n  prompt  {prompt_of(need.request)!r:.300}"
            )
        answer = left.pop(0)
        if callable(answer) and not isinstance(answer, type):
            try:
                answer = answer(need.request)
            except AssertionError:
                raise
            except Exception as problem:  # the provider fails
                answer = problem
        if isinstance(answer, BaseException):
            raise _Scripted(answer)
        response = as_response(answer)
        cost = self.definitions.cost_of(need.request, response)
        stored = self._stored(ctx, facts.ModelCallCached(ctx.seq, need.step, ctx.now_us, need.digest, need.request, response, ctx.seen, cost))
        answered: ModelResponse = stored.response
        return answered

    def _read(self, ctx: ActivationContext[Any], need: NeedRead, left: list[Settled]) -> Any:
        scripted = next((each for each in left if each.tool == need.tool), None)
        if scripted is None:
            value, failure = apart(lambda: asyncio.run(run_read(without_waiting(need), self.definitions.codec)))
        else:
            left.remove(scripted)
            codec = self.definitions.codec
            value, failure = (
                (codec.tree(codec.encode_value(scripted.value, need.returns)), None) if scripted.error is None else (None, failure_of(scripted.error))
            )
        return self._stored(ctx, facts.ToolCallCached(ctx.seq, need.index, ctx.now_us, need.tool, need.digest, need.args, value, failure, ctx.seen))

    def _stored(self, ctx: ActivationContext[Any], cached: Any) -> Any:
        """As it would be read back; the fold has it from here on, behind what was loaded before."""
        loads, ctx.loads = ctx.loads, ()
        for loaded in loads:
            take(self.run, loaded)
            self.journal.append(loaded)
        codec = self.definitions.codec
        staged = codec.stage(cached, event_id=b"\0" * 16)
        stored = codec.decode(staged.type, staged.schema, staged.data)
        take(self.run, stored)
        self.journal.append(stored)
        return stored


def without_waiting(need: NeedRead) -> NeedRead:
    """The same read, tried again at once where it would be tried again later."""
    if need.retry is None:
        return need
    return attrs.evolve(need, retry=attrs.evolve(need.retry, first=timedelta(0), longest=timedelta(0)))
