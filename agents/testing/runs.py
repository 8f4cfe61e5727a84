"""An app running in a test: what goes in, how time passes, where it dies, and what came of it all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Self

from ...eventlog.clock import from_datetime
from ...eventlog.log import EventLog
from ...eventlog.names import stream_name
from ...eventlog.opening import open_log
from .. import asking, facts
from ..app import App, Input
from ..defining import Agent
from ..sending import send
from ..tools import Tool
from .answers import ModelCall, RecordedModel, Script, ScriptedModel
from .apart import apart
from .arrivals import asked_of
from .clock import VirtualClock
from .hands import Effect, Hands
from .life import Life
from .record import Record
from .replaying import assert_replays


def boundaries() -> tuple[str, ...]:
    """Names of the points at which a run can die, in the order in which one input meets them."""
    # By name and not before it is asked for, as in `replaying`.
    names: tuple[str, ...] = import_module("...effector.crash", __package__).BOUNDARIES
    return names


class Run:
    """One app on one log in memory. Made by ``Harness.start``; every method that does something gives the run back.

    Worker and effector live only while a method runs that lets time pass. What survives is the log and the outside world:
    the clock, what models and tools were asked.
    """

    def __init__(
        self, app: App | Agent, *, models: Any = None, tools: Mapping[Tool | str, Any] | None = None, clock: VirtualClock | None = None, patience: float = 20.0
    ) -> None:
        #: Calls that reached the model, in order.
        self.calls: list[ModelCall] = []
        #: Boundaries at which it died so far.
        self.crashes: list[str] = []
        self.clock = clock or VirtualClock()
        self.log: EventLog = open_log("memory://", clock=self.clock)
        #: The app with its model and tools replaced where the test says so.
        self.app = _with_models(app, models, self.calls)
        self._hands = Hands(self.app, tools or {})
        self._record = Record(self.app, self.log)
        self._planned: list[list[Any]] = []
        self._patience = patience
        self._lives = 0
        self._sent = 0

    def __repr__(self) -> str:
        return f"Run({', '.join(sorted(self.app.agents))}; {self.clock.now.isoformat()}; {self.log.last_position()} events)"

    # ── what goes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, agent: str, key: str, payload: Any, *, id: str | None = None) -> Self:
        """Send an input; without ``id`` each is a new one. Raises ``InputRefused``.

        Dying at ``input.offered`` or ``input.recorded`` is what a sender sees of it: no receipt, so it sends the same again.
        """
        self._sent += 1
        given = Input(agent, key, payload, id or f"input-{self._sent}")
        while self._dies("input.offered"):
            pass
        send(self.app, self.log, given)
        while self._dies("input.recorded"):
            send(self.app, self.log, given)
        return self

    def signal(self, agent: str, key: str, name: str, payload: Any = None, *, id: str | None = None) -> Self:
        """Send a signal to a key, whether or not it waits for one; the same ``id`` counts once. Raises ``InputRefused``."""
        self._sent += 1
        asking.signal(self.log, self.app.codec, self.app.agent(agent).name, key, name, payload, id or f"signal-{self._sent}")
        return self

    def approve(self, agent: str, key: str, question: str | None = None, *, by: str = "a tester", reason: str = "") -> Self:
        """Say yes to this question, or to the only one that is open; raises ``NotWaitedFor`` naming those there are."""
        return self._answer(agent, key, question, True, by, reason)

    def deny(self, agent: str, key: str, question: str | None = None, *, by: str = "a tester", reason: str = "") -> Self:
        """Say no."""
        return self._answer(agent, key, question, False, by, reason)

    def _answer(self, agent: str, key: str, question: str | None, approved: bool, by: str, reason: str) -> Self:
        asked = asked_of(self._record.fold(agent, key).run, question).requested
        asking.answer(self.log, self.app.codec, stream_name(agent, key), asked.approval_id, approved=approved, by=by, reason=reason, app=self.app)
        return self

    def cancel(self, agent: str, key: str, *, by: str = "a tester", reason: str = "") -> Self:
        """Cancel the key's current activation; raises ``RequestRefused`` when there is none."""
        asking.cancel(self.log, self.app.codec, self.app.agent(agent).name, key, input_id=None, seq=None, by=by, reason=reason, app=self.app)
        return self

    # ── dying ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def crash_at(self, boundary: str, n: int = 1) -> Self:
        """Die the ``n``-th time from now that ``boundary`` is reached; may be said several times. Raises ``ValueError``."""
        if boundary not in boundaries():
            raise ValueError(f"{boundary!r} names no boundary; there are: {', '.join(boundaries())}")
        if n < 1:
            raise ValueError(f"crash_at({boundary!r}, {n}): n counts from 1")
        self._planned.append([boundary, n])
        return self

    def _dies(self, name: str) -> bool:
        due = False
        for planned in self._planned:
            if planned[0] == name:
                planned[1] -= 1
                due = due or planned[1] == 0
        self._planned = [planned for planned in self._planned if planned[1] > 0]
        if due:
            self.crashes.append(name)
        return due

    # ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def until_idle(self, *, past_deadlines: bool = False) -> Self:
        """Run until nothing is left to do, through every crash; while all is quiet, time jumps to the next timer or retry.

        A key that waits for a person or a signal is left waiting, so that the test can answer; with ``past_deadlines``
        time goes on there as well. Raises ``AssertionError`` when it does not come to rest.
        """
        return self._live(lambda: self._record.next_moment(past_deadlines=past_deadlines))

    def until(self, moment: datetime) -> Self:
        """Run until ``moment`` (aware), with everything on the way that falls due; then the clock shows it."""
        end = from_datetime(moment)
        if end < self.clock():
            raise ValueError(f"{moment.isoformat()} has passed: it is {self.clock.now.isoformat()}")

        def next_moment() -> int | None:
            found = self._record.next_moment(past_deadlines=True)
            return found if found is not None and found <= end else None

        self._live(next_moment)
        self.clock.jump(end)
        return self

    def advance(self, length: timedelta) -> Self:
        """Run through this much time."""
        return self.until(self.clock.now + length)

    def _live(self, next_moment: Callable[[], int | None]) -> Self:
        while True:
            self._lives += 1
            life = Life(self.app, self.log, self.clock, self._hands, self._dies, f"life-{self._lives}", self._patience)
            if not apart(lambda: life.live(next_moment)):  # noqa: B023 - called at once
                return self

    # ── what came of it ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def effects(self) -> list[Effect]:
        """Calls of tools with a side effect, in the order in which they began, repetitions after a crash included."""
        return list(self._hands.effects)

    def ledger(self, tool: Tool | str) -> list[Any]:
        """What the tool returned, once per intent; a repetition under the same intent that returned something else is listed too."""
        return self._hands.ledger(tool)

    def state(self, agent: str, key: str) -> Any:
        """The key's aggregate as the log has it now."""
        return self._record.fold(agent, key).state

    def output(self, agent: str, key: str) -> Any:
        """What the key's last activation ended with; raises ``AssertionError`` saying where it stands when none has, or one is parked."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        return self._record.output(agent, key)

    def events(self, stream: str, kind: type | tuple[type, ...] = object) -> list[Any]:
        """The decoded events of a stream (``accounts-acct-42``), oldest first; only those of ``kind`` when it is given."""
        return [event for event in self._record.events(stream) if isinstance(event, kind)]

    def facts_of(self, agent: str, key: str) -> list[Any]:
        """The runtime's own events of a key."""
        return self.events(stream_name(agent, key), facts.FACTS)

    def assert_replays(self, stream: str | None = None) -> Self:
        """Every stream, or this one, replays the same; raises ``AssertionError`` showing recorded and decided."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        assert_replays(self.app, self, stream)
        return self

    def close(self) -> None:
        """Drop the log."""
        self.log.close()


def _with_models(app: App | Agent, models: Any, calls: list[ModelCall]) -> App:
    """The app again, its model replaced by the script, if there is one, and written down."""
    made = copy.copy(app) if isinstance(app, App) else App(agents=[app])
    made.__dict__.pop("definitions", None)
    client = made.models if models is None else models if hasattr(models, "complete") else ScriptedModel(_script(models))
    made.models = RecordedModel(client, calls) if client is not None else None
    return made


def _script(models: Any) -> Script:
    return [models] if isinstance(models, str) else models
