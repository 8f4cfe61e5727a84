"""The core: one turn as a generator that yields what it needs and returns what it staged.

Rules of this file: it never waits, never reads a clock, never touches a store. ``run_turn`` drives the agent's coroutine
by hand, so the only things that agent code can wait for are the requests in ``requests``; whatever else it awaits is
refused with the line that did it (S-4.8). The shell that answers is a ``match`` in the worker, and another in replay.
"""

from __future__ import annotations

import functools
import linecache
import sysconfig
from collections.abc import Coroutine, Generator
from types import CoroutineType
from typing import Any

from . import facts
from .awaiting import never_awaited
from .context import ActivationContext
from .errors import ActivationCancelled, DefinitionError, ForeignAwait
from .fibers import Fibers, Parked
from .linear import ContinueWith
from .outcome import Complete, Suspend
from .requests import Answer, Request, TurnEnd
from .run import LINEAR


def run_turn(ctx: ActivationContext[Any]) -> Generator[Request, Answer, TurnEnd]:
    """Run the agent's code for one turn.

    Yields requests; ``send`` their answers, or ``throw`` what the answer's absence raises. Returns the turn's end.
    Raises whatever the agent's code raised, ``Drift`` when it left the recorded path, ``ForeignAwait`` when it awaited
    something that is not a step. Closing the generator closes the agent's coroutine.
    """
    agent = ctx._definitions.agent
    if ctx._activation.cancel is not None and ctx.is_cancelled_before_it_began:
        return _end(ctx, ActivationCancelled(""))
    coroutine = agent.fn(ctx, ctx.input) if agent.takes_input else agent.fn(ctx)
    if type(coroutine) is not CoroutineType and not isinstance(coroutine, Coroutine):
        raise DefinitionError(f"agent {agent.name} returned {type(coroutine).__name__} instead of a coroutine")
    fibers = Fibers(coroutine, ctx, functools.partial(_foreign, ctx))
    try:
        try:
            result = yield from fibers.run()
        except ActivationCancelled as cancelled:
            if not ctx.was_cancelled:
                raise
            result = cancelled
        if ctx.fault is not None:  # agent code caught it and went on; what it staged must not be committed
            raise ctx.fault
        unreached = ctx.unreached()
        if unreached is not None:
            raise unreached
        if ctx.steps_made and not isinstance(result, Parked | ActivationCancelled) and (forgotten := never_awaited(ctx.steps_made)):
            raise DefinitionError(
                f"{ctx.stream}, activation {ctx.seq}: ctx.{forgotten}(…) was called and never awaited, so nothing of it happened. "
                f"Write await ctx.{forgotten}(…)."
            )
        ctx.save_others()
        return _end(ctx, result)
    finally:
        ctx.sealed = True
        fibers.close()


def _foreign(ctx: ActivationContext[Any], coroutine: Any, awaited: object) -> BaseException:
    """Names the innermost line of agent code that awaits ``awaited``; the line of a library it calls only when there is no other."""
    place, line = "", ""
    libraries = tuple({path for name, path in sysconfig.get_paths().items() if name in ("stdlib", "platstdlib", "purelib", "platlib")})
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and not frame.f_code.co_filename.startswith("<") and not (place and frame.f_code.co_filename.startswith(libraries)):
            candidate = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            if not place or "await" in candidate:
                place, line = f"{frame.f_code.co_filename}:{frame.f_lineno}", candidate
        coroutine = getattr(coroutine, "cr_await", None)
    ctx.fault = ctx.fault or ForeignAwait(
        f"{ctx.stream}, activation {ctx.seq}: agent code awaited {type(awaited).__name__ if awaited is not None else 'the event loop'}, which no log records\n"
        f"  {place}: {line}\n"
        "  Await a durable step instead: ctx.call_model, ctx.run_tool, or await ctx.run(fn, …) for any other read; to wait, return Suspend(timeout=…)."
    )
    return ctx.fault


def _end(ctx: ActivationContext[Any], result: object) -> TurnEnd:
    step, index = ctx.position()
    closing: facts.Suspended | facts.Completed | facts.Continued
    now, seen, code = ctx.now_us, ctx.seen, ctx.version
    if isinstance(result, Parked):
        if ctx.is_resume:
            raise DefinitionError(f"{ctx.stream}: an activation that has ended a turn with Suspend cannot wait at an await; choose one style for an agent")
        closing = facts.Suspended(ctx.seq, now, step, index, result.waits, LINEAR, ctx.deadline_of(result.waits), b"", "", seen, code)
    elif isinstance(result, Suspend):
        if ctx.is_linear:
            raise DefinitionError(f"{ctx.stream}: an activation that has waited at an await cannot end its turn with Suspend; choose one style for an agent")
        wait = result.length(ctx._definitions.agent.wait_timeout_us)
        closing = facts.Suspended(ctx.seq, now, step, index, ctx.waits(), result.wait, now + wait, result.snapshot, result.adapter, seen, code)
    elif isinstance(result, ContinueWith):
        began = ctx.next_input(result.payload)
        closing = facts.Continued(ctx.seq, now, step, index, began, seen, code)
    elif isinstance(result, ActivationCancelled):
        closing = facts.Completed(ctx.seq, now, step, index, None, seen, code, True)
    else:
        output = result.output if isinstance(result, Complete) else result
        closing = facts.Completed(ctx.seq, now, step, index, output, seen, code)
    staged = ctx.staged
    if ctx.unanswered:
        staged = staged + [facts.ModelCallFailed(ctx.seq, at, failure) for at, failure in ctx.unanswered.items()]
    return TurnEnd((*staged, closing), closing, ctx.arguments, tuple(ctx.sends), ctx.loads, ctx.changes)
