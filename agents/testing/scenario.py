"""``given(…).when(…).answering(…).then(…)``: turns of one key through the pure core, with no store and no effect.

A scenario is a value: its history is a tuple of rows, folded anew for every turn by the same folder as everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import EllipsisType
from typing import Any, Self

import attrs

from ...eventlog.clock import from_datetime, from_timedelta
from ...eventlog.errors import LogError
from ...eventlog.events import Row
from ...eventlog.names import check_stream, stream_name
from .. import facts
from ..app import App
from ..context import ActivationContext
from ..defining import Agent
from ..definitions import Definitions
from ..errors import DefinitionError
from ..intents import fact_id
from ..lifecycle import ActivationState
from ..requests import TurnEnd
from ..streams import Folder, StreamState
from .alignment import align, table
from .answers import as_response
from .arrivals import Arrival, Elapsed, Settled, World
from .clock import START
from .matching import Matcher, Staged, fits, show
from .turning import Driver, Shelf

_RUNNABLE = frozenset({ActivationState.QUEUED, ActivationState.RESUMABLE})


@attrs.frozen(eq=False)
class Given:
    """What has happened to a key so far."""

    definitions: Definitions
    folder: Folder
    stream: str
    now: int
    rows: tuple[Row, ...] = ()
    #: Other aggregates' streams.
    others: Shelf = attrs.field(factory=lambda: Shelf({}))

    @property
    def state(self) -> Any:
        """The key's aggregate."""
        return self.folded().state

    def folded(self) -> StreamState:
        """The fold of the history."""
        return self.folder.fold(self.folder.empty(self.stream), self.rows)

    def with_events(self, events: Sequence[object]) -> Self:
        """The history with ``events`` (domain events, facts or arrivals) behind it."""
        given = self
        for event in events:
            for fact in event.facts(given.world()) if isinstance(event, Arrival) else [event]:
                given = given._with(fact)
            if isinstance(event, Elapsed):
                given = attrs.evolve(given, now=given.now + from_timedelta(event.length))
        return given

    def world(self) -> World:
        """What arrivals look at."""
        return World(self.folded().run, self.definitions.codec, self.definitions.tools, self.now)

    def changed(self, saved: facts.AggregateSaved) -> list[object]:
        """The events that were saved on another aggregate's stream."""
        rows = self.others.streams[saved.stream][saved.version : saved.version + len(saved.types)]
        return [self.definitions.codec.decode(*row[1:4]) for row in rows]

    def _with(self, event: object) -> Self:
        if type(event) not in facts.FACTS:
            self.definitions.check_domain_event(event)
        version = len(self.rows)
        staged = self.definitions.codec.stage(event, event_id=fact_id(self.stream, version))
        return attrs.evolve(self, rows=(*self.rows, (version, staged.type, staged.schema, staged.data, staged.event_id, self.now)))

    def when(self, *arriving: Any) -> When:
        """An input (an event or a plain value), or what the activation waits for: ``returned``, ``approved``, ``elapsed``, …"""
        if not arriving:
            raise TypeError("when(…) takes an input, or one or more arrivals such as returned(refund, 're_1') or elapsed(hours)")
        before = self
        for each in arriving:
            if isinstance(each, Arrival):
                before = before.with_events([each])
            else:
                before = before._with(self.definitions.received(f"input-{before.folded().run.inputs}", each))
        return When(before)


@attrs.define(eq=False)
class When:
    """One turn, run when ``then`` asks what came of it."""

    given: Given
    _answers: list[Any] = attrs.field(factory=list)

    def answering(self, *answers: Any) -> Self:
        """What models say, in order: a text, a ``ModelResponse``, an instance of the reply class, an exception, a function of
        the request; and what read-only tools return, ``returned(lookup, …)``, per tool in order. A read that is not answered
        here really runs. Raises ``TypeError`` for what no model could say.
        """
        for each in answers:
            if not isinstance(each, Settled | BaseException) and not callable(each):
                as_response(each)
        self._answers += answers
        return self

    def then(self, *expected: Any) -> Given:
        """The turn stages this, in order and nothing else; ``...`` stands for any number of things.

        Domain events are compared when at least one is listed, remarks (``ctx.trace``) likewise; all else always is. Returns
        the history with the turn in it, for the next ``when``. Raises ``AssertionError`` with both lists side by side.
        """
        __tracebackhide__ = True  # pytest shows the line of the test instead
        for each in expected:
            if not isinstance(each, Matcher | EllipsisType) and not self.given.definitions.codec.knows(type(each)):
                raise TypeError(f"then(…) takes matchers, domain events and ..., not {each!r:.80}")
        return self._compared(expected, left_out=True)

    def then_nothing(self) -> Given:
        """The turn completes without an event, an effect or a wait."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        return self._compared([Matcher("the end, and nothing before it", lambda staged: isinstance(staged.event, facts.Completed))], left_out=False)

    def then_raises(self, error: type[BaseException], match: str = "") -> None:
        """The turn raises ``error``, with a text in which the pattern ``match`` is found; nothing of it would be recorded."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        try:
            end = self._run()[0]
        except error as problem:
            if not re.search(match, str(problem)):
                raise AssertionError(f"{self._place()}: {type(problem).__name__} was raised, but {match!r} is not in its text: {problem}") from problem
            return
        except AssertionError:
            raise
        except Exception as problem:
            raise AssertionError(f"{self._place()}: {error.__name__} was expected, and {type(problem).__name__} was raised: {problem}") from problem
        raise AssertionError(f"{self._place()}: {error.__name__} was expected, and the turn ended with {type(end.closing).__name__}")

    @property
    def staged(self) -> tuple[object, ...]:
        """Everything the turn stages, for assertions of your own; the last is how it ended."""
        return self._finished()[0].staged

    def _compared(self, expected: Sequence[Any], *, left_out: bool) -> Given:
        __tracebackhide__ = True  # pytest shows the line of the test instead
        end, after = self._finished()
        lines = align(expected, self._seen(end, after, expected, left_out), fits)
        if not all(line.fits for line in lines):
            shown = table(lines, repr, show)
            raise AssertionError(f"{self._place()}: what was staged is not what was expected\n{shown}")
        return after

    def _seen(self, end: TurnEnd, after: Given, expected: Sequence[Any], left_out: bool) -> list[Staged]:
        definitions = self.given.definitions
        tools = {each.intent_id: each.tool for row in after.rows if row[1] == "intent.staged" for each in [definitions.codec.decode(*row[1:4])]}
        payloads = {(stream, received.input_id): received for stream, received in end.sends}
        events = any(not isinstance(each, (Matcher, EllipsisType, *facts.FACTS)) for each in expected) or not left_out
        remarks = any(isinstance(each, Matcher) and each.shown.startswith("traced(") for each in expected)
        seen = []
        for event in end.staged:
            is_fact = type(event) in facts.FACTS
            if (not is_fact and not events) or (isinstance(event, facts.Traced) and not remarks):
                continue
            payload = None
            if isinstance(event, facts.InputSent):
                payload = _payload(definitions, payloads[event.stream, event.input_id])
            elif isinstance(event, facts.Continued):
                payload = _payload(definitions, event.input)
            elif isinstance(event, facts.AggregateSaved):
                payload = tuple(after.changed(event))
            seen.append(Staged(event, definitions.codec, definitions.tools, end.closing.now, tools, payload))
        return seen

    def _finished(self) -> tuple[TurnEnd, Given]:
        __tracebackhide__ = True  # pytest shows the line of the test instead
        try:
            return self._run()
        except AssertionError:
            raise
        except Exception as problem:
            raise AssertionError(f"{self._place()}: the turn failed with {type(problem).__name__}: {problem}") from problem

    def _run(self) -> tuple[TurnEnd, Given]:
        __tracebackhide__ = True  # pytest shows the line of the test instead
        given, state = self.given, self.given.folded()
        activation = state.run.current
        if activation is None or activation.state not in _RUNNABLE:
            waits = ", ".join(_wait(state, wait) for wait in activation.waits) if activation is not None else "nothing at all"
            raise AssertionError(f"{self._place()}: there is no turn to run, for it still waits for {waits}")
        now, seen = activation.turn_now or given.now, activation.turn_seen if activation.turn_now else state.version
        ctx: ActivationContext[Any] = ActivationContext(given.definitions, state.run, activation, state.begun_with(activation), given.stream, now, seen)
        driver = Driver(given.definitions, state.run, self._answers, given.others)
        end = driver.drive(ctx)
        after = given.with_events([*driver.journal, *end.loads, *end.staged])
        after.folded()  # what cannot be folded could not have been appended either
        for change in end.changes:
            after = attrs.evolve(after, others=after.others.added(change.stream, change.events, given.now))
        return end, after

    def _place(self) -> str:
        current = self.given.folded().run.current
        return self.given.stream if current is None else f"{self.given.stream}, activation {current.seq}, turn {current.turns}"


def _wait(state: StreamState, wait: str) -> str:
    intent = state.run.intents.get(wait)
    return f"{intent.tool} ({wait})" if intent is not None else wait


def _payload(definitions: Definitions, received: facts.InputReceived) -> Any:
    codec = definitions.codec
    try:
        return codec.decode(received.type, received.schema, received.payload) if received.type else codec.decode_value(received.payload, Any)
    except LogError:
        return received


def given(
    app: App | Agent, *history: object, agent: str | None = None, key: str = "key", at: datetime = START, others: Mapping[str, Sequence[object]] | None = None
) -> Given:
    """A key to which ``history`` (domain events) has happened, at the moment ``at``.

    ``app`` is an app or just an agent; of an app with several agents, ``agent`` names the one that is meant. ``others``
    (stream → events) are aggregates that the agent loads. Raises ``DefinitionError``.
    """
    whole = app if isinstance(app, App) else App(agents=[app])
    names: Mapping[str, Definitions] = whole.definitions
    if agent is None and len(names) > 1:
        raise DefinitionError(f"given(app): the app has several agents ({', '.join(sorted(names))}); say which one with agent=…")
    definitions = names[whole.agent(agent if agent is not None else next(iter(names))).name]
    shelf, now = Shelf({}), from_datetime(at)
    for stream, events in (others or {}).items():
        shelf = shelf.added(check_stream(stream), map(definitions.codec.encode, events), now)
    return Given(definitions, Folder(definitions), stream_name(definitions.agent.name, key), now, others=shelf).with_events(history)
