"""The vocabulary of ``then``: what a turn may stage, as values to compare with, and the same words for what it did stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from ...eventlog.clock import from_timedelta
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError
from ...eventlog.names import stream_name
from .. import facts
from ..tools import Tool, ToolSet

ANYTHING: Final = object()
"""Fits every output and every payload."""


@attrs.frozen(eq=False)
class Staged:
    """One thing a turn staged, with what is needed to look into it."""

    event: Any
    codec: Codec
    tools: ToolSet
    now: int
    #: Tool of each intent of the stream, by intent id.
    intents: Mapping[str, str]
    #: What was sent to another key, what an activation goes on with, or what was saved elsewhere.
    payload: Any = None

    def is_same(self, expected: Any, actual: Any) -> bool:
        """Whether two values are equal, or are once the log has written them."""
        if expected is ANYTHING or bool(actual == expected):
            return True
        try:
            return self.codec.encode_value(expected, Any) == self.codec.encode_value(actual, Any)
        except LogError:
            return False


@attrs.frozen(eq=False)
class Matcher:
    """Something that ``then`` expects; its ``repr`` is how it was written."""

    shown: str
    accepts: Callable[[Staged], bool]

    def __repr__(self) -> str:
        return self.shown


def _of(kind: type, shown: str, accepts: Callable[[Staged], bool] = lambda staged: True) -> Matcher:
    return Matcher(shown, lambda staged: type(staged.event) is kind and accepts(staged))


def _call(name: str, *args: str, **named: Any) -> str:
    return f"{name}({', '.join([*args, *(f'{key}={value!r}' for key, value in named.items())])})"


def performed(tool: Tool | str, /, **args: Any) -> Matcher:
    """An effect is staged with this tool; of its arguments the ones named here are compared."""
    name = tool if isinstance(tool, str) else tool.name

    def accepts(staged: Staged) -> bool:
        return staged.event.tool == name and all(
            key in staged.event.args and staged.event.args[key] == _plain(staged, name, key, value) for key, value in args.items()
        )

    return _of(facts.IntentStaged, _call("performed", name, **args), accepts)


intent = performed
"""``performed`` by the name the log has for it."""


def _plain(staged: Staged, tool: str, parameter: str, value: Any) -> Any:
    """An argument as the log holds it: by the parameter's annotation, as staging does."""
    known = staged.tools.get(tool)
    annotated = {field.name: field.type for field in attrs.fields(known.arguments)} if known is not None else {}
    try:
        return staged.codec.tree(staged.codec.encode_value(value, annotated.get(parameter) or Any))
    except LogError:
        return value


def approval(question: Any = ANYTHING, *, channel: str | None = None, **details: Any) -> Matcher:
    """A person is asked; channel and details are compared when they are given."""

    def accepts(staged: Staged) -> bool:
        asked = staged.event
        fits = staged.is_same(question, asked.question) and channel in (None, asked.channel)
        return fits and all(key in asked.details and staged.is_same(value, asked.details[key]) for key, value in details.items())

    shown = {"channel": channel} if channel is not None else {}
    return _of(facts.ApprovalRequested, _call("approval", *([] if question is ANYTHING else [repr(question)]), **shown, **details), accepts)


def suspended() -> Matcher:
    """The turn ends, and the activation waits."""
    return _of(facts.Suspended, "suspended()")


def completed(output: Any = ANYTHING) -> Matcher:
    """The activation is over; the output is compared when it is given."""
    shown = "completed()" if output is ANYTHING else _call("completed", repr(output))
    return _of(facts.Completed, shown, lambda staged: not staged.event.cancelled and staged.is_same(output, staged.event.output))


def ended_cancelled() -> Matcher:
    """The activation is over because it was cancelled."""
    return _of(facts.Completed, "ended_cancelled()", lambda staged: bool(staged.event.cancelled))


def continued(payload: Any = ANYTHING) -> Matcher:
    """The activation is over and the next begins with ``payload``."""
    shown = "continued()" if payload is ANYTHING else _call("continued", repr(payload))
    return _of(facts.Continued, shown, lambda staged: staged.is_same(payload, staged.payload))


def sleeping(length: timedelta | None = None) -> Matcher:
    """A timer is armed; its length, counted from the turn's moment, is compared when it is given."""
    shown = "sleeping()" if length is None else _call("sleeping", repr(length))
    return _of(facts.TimerArmed, shown, lambda staged: length is None or staged.event.fires_at - staged.now == from_timedelta(length))


def sent(agent: str, key: str, payload: Any = ANYTHING) -> Matcher:
    """An input goes to another key."""
    stream = stream_name(agent, key)
    shown = _call("sent", repr(agent), repr(key), *([] if payload is ANYTHING else [repr(payload)]))
    return _of(facts.InputSent, shown, lambda staged: staged.event.stream == stream and staged.is_same(payload, staged.payload))


def taken(signal: str) -> Matcher:
    """A signal of this name was taken."""
    return _of(facts.SignalTaken, _call("taken", repr(signal)), lambda staged: staged.event.name == signal)


def withdrawn(tool: Tool | str) -> Matcher:
    """An effect that nobody waits for any more is withdrawn."""
    name = tool if isinstance(tool, str) else tool.name
    return _of(facts.IntentSettled, _call("withdrawn", name), lambda staged: staged.intents.get(staged.event.intent_id) == name)


def saved(stream: str, *events: object) -> Matcher:
    """Another aggregate's stream gets these events; they are compared when there are any."""
    shown = _call("saved", repr(stream), *map(repr, events))
    return _of(facts.AggregateSaved, shown, lambda staged: staged.event.stream == stream and (not events or staged.payload == events))


def patched(name: str) -> Matcher:
    """The code went the new way at the guard ``name``."""
    return _of(facts.Patched, _call("patched", repr(name)), lambda staged: staged.event.name == name)


def traced(text: str) -> Matcher:
    """A remark was left."""
    return _of(facts.Traced, _call("traced", repr(text)), lambda staged: staged.event.text == text)


def fits(expected: Any, staged: Staged) -> bool:
    """Whether ``staged`` is what was expected: by its matcher, or, a domain event, by equality."""
    if isinstance(expected, Matcher):
        return expected.accepts(staged)
    return type(expected) is type(staged.event) and bool(expected == staged.event)


def show(staged: Staged) -> str:
    """What was staged, in the words it would be expected in."""
    event = staged.event
    match event:
        case facts.IntentStaged():
            return _call("performed", event.tool, **event.args)
        case facts.ApprovalRequested():
            return _call("approval", repr(event.question), channel=event.channel, **event.details)
        case facts.Suspended():
            return "suspended()"
        case facts.Completed():
            return "ended_cancelled()" if event.cancelled else _call("completed", repr(event.output))
        case facts.Continued():
            return _call("continued", repr(staged.payload))
        case facts.TimerArmed():
            return _call("sleeping", repr(timedelta(microseconds=event.fires_at - staged.now)))
        case facts.InputSent():
            agent, _, key = event.stream.partition("-")
            return _call("sent", repr(agent), repr(key), repr(staged.payload))
        case facts.SignalTaken():
            return _call("taken", repr(event.name))
        case facts.IntentSettled():
            return _call("withdrawn", staged.intents.get(event.intent_id, event.intent_id))
        case facts.AggregateSaved():
            return _call("saved", repr(event.stream), *map(repr, staged.payload or ()))
        case facts.Patched():
            return _call("patched", repr(event.name))
        case facts.Traced():
            return _call("traced", repr(event.text))
    return repr(event)
