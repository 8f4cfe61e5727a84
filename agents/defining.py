"""``@agent``: a name, an async function, the state it folds and its policies. Frozen; nothing is registered globally."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import Any, Final

import attrs

from ..eventlog.clock import from_timedelta
from ..eventlog.errors import InvalidName
from ..eventlog.names import check_agent
from .aggregate import Aggregate, check_aggregate
from .budgets import Budget
from .errors import DefinitionError
from .retry import RetryPolicy
from .run import QUEUE, WHILE_SUSPENDED
from .schedules import Schedule

ON_PARKED: Final = ("continue", "wait")


@attrs.frozen(eq=False)
class Agent:
    """What to do when something arrives for a key."""

    name: str
    fn: Callable[..., Awaitable[Any]]
    state: type[Aggregate] | None
    #: Types the second parameter takes: event classes or plain types; empty when the function takes only ``ctx``.
    inputs: tuple[Any, ...]
    takes_input: bool
    retry: RetryPolicy
    #: Wall-clock limit of one turn, model calls included (S-3.3).
    turn_timeout: timedelta
    #: Deadline of a suspension that names none (S-7.3).
    wait_timeout: timedelta
    #: Expiry of an intent that names none (S-5.5).
    intent_ttl: timedelta
    #: What later inputs of a key do while an earlier one is parked: ``continue`` or ``wait`` (S-3.3).
    on_parked: str = "continue"
    #: Raise it when the code changes its steps; runs begun under an older one see that in ``ctx.version``.
    version: int = 1
    #: What a new input does while an activation of its key is suspended: ``queue``, ``interrupt`` or ``concurrent`` (S-2.4).
    while_suspended: str = QUEUE
    #: What the model calls of an activation, or of a key, may use up.
    budget: Budget | None = None
    #: When it gets an input by the clock.
    schedules: tuple[Schedule, ...] = ()
    wait_timeout_us: int = attrs.field(init=False, default=attrs.Factory(lambda self: from_timedelta(self.wait_timeout), takes_self=True))
    intent_ttl_us: int = attrs.field(init=False, default=attrs.Factory(lambda self: from_timedelta(self.intent_ttl), takes_self=True))

    def __call__(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        return self.fn(*args, **kwargs)


def agent(
    name: str,
    *,
    state: type[Aggregate] | None = None,
    retry: RetryPolicy | None = None,
    turn_timeout: timedelta = timedelta(seconds=60),
    wait_timeout: timedelta = timedelta(hours=24),
    intent_ttl: timedelta = timedelta(hours=1),
    on_parked: str = "continue",
    version: int = 1,
    while_suspended: str = QUEUE,
    budget: Budget | None = None,
    schedules: Iterable[Schedule] = (),
) -> Callable[[Callable[..., Awaitable[Any]]], Agent]:
    """Make an agent of ``async def fn(ctx)`` or ``async def fn(ctx, asked: EventType)``.

    ``name`` is also the category of its streams (S-1.2). Raises ``DefinitionError`` for anything wrong with it.
    """
    try:
        check_agent(name)
    except InvalidName as problem:
        raise DefinitionError(str(problem)) from None
    if state is not None:
        check_aggregate(state)
    if on_parked not in ON_PARKED:
        raise DefinitionError(f"agent {name}: on_parked must be one of {', '.join(ON_PARKED)}, not {on_parked!r}")
    if while_suspended not in WHILE_SUSPENDED:
        raise DefinitionError(f"agent {name}: while_suspended must be one of {', '.join(WHILE_SUSPENDED)}, not {while_suspended!r}")
    for label, length in (("turn_timeout", turn_timeout), ("wait_timeout", wait_timeout), ("intent_ttl", intent_ttl)):
        if length <= timedelta(0):
            raise DefinitionError(f"agent {name}: {label} must be longer than zero, not {length}")

    planned = _schedules(name, schedules)

    def make(fn: Callable[..., Awaitable[Any]]) -> Agent:
        if not inspect.iscoroutinefunction(fn):
            raise DefinitionError(f"agent {name}: {getattr(fn, '__qualname__', fn)} must be an async function")
        parameters = [p for p in inspect.signature(fn).parameters.values() if p.default is p.empty]
        if len(parameters) not in (1, 2):
            raise DefinitionError(f"agent {name}: the function takes (ctx) or (ctx, input), not {inspect.signature(fn)}")
        inputs = _input_types(name, fn, parameters[1].name) if len(parameters) == 2 else ()
        return Agent(
            name,
            fn,
            state,
            inputs,
            len(parameters) == 2,
            _policy(name, retry),
            turn_timeout,
            wait_timeout,
            intent_ttl,
            on_parked,
            version,
            while_suspended,
            budget,
            planned,
        )

    return make


def _policy(name: str, given: RetryPolicy | None) -> RetryPolicy:
    if given is not None and not isinstance(given, RetryPolicy):
        raise DefinitionError(f"agent {name}: retry= takes a RetryPolicy, such as RetryPolicy(max_attempts=5), not {given!r:.80}")
    return given or RetryPolicy()


def _schedules(name: str, given: Iterable[Schedule]) -> tuple[Schedule, ...]:
    schedules = tuple(given)
    names = [each.name for each in schedules]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise DefinitionError(f"agent {name}: two schedules are named {twice[0]!r}; give one of them another name=")
    return schedules


def _input_types(name: str, fn: Callable[..., Any], parameter: str) -> tuple[Any, ...]:
    try:
        hint = typing.get_type_hints(fn).get(parameter, Any)
    except NameError as problem:
        raise DefinitionError(f"agent {name}: the annotation of {parameter!r} names something unknown: {problem}") from problem
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
