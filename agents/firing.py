"""Who keeps an app's schedules going: each has a stream of its own, with its next moment as a wake-up in the queue ``cron``.

The crash argument. ``schedule.planned`` on the stream ``<agent>.cron-<name>`` holds the next moment and the input it brings,
and the wake-up is set by the same append. When the moment is there, **one** request delivers the input, records that it did,
plans the next moment and hands the lease back. Killed before it, nothing has happened and the wake-up still stands; killed
after it, nothing is left to do. Two workers cannot both do it: the lease has a token, the append an expected version, and the
input an id made of the moment, which its stream accepts once (S-2.2).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Final

import attrs

from ..eventlog.clock import SECOND, Micros
from ..eventlog.errors import EventIdConflict, LogError, LogUnavailable
from ..eventlog.events import NewEvent, StoredEvent
from ..eventlog.log import AppendRequest, Claim, EventLog, Fence, StreamAppend, Wake
from ..eventlog.names import stream_name
from ..eventlog.versions import ANY, EMPTY
from . import facts
from .app import App
from .appends import TURNS
from .intents import fact_id, input_event_id
from .schedules import Schedule, between, latest_until, next_after, shown
from .sending import check_input_id

CRON: Final = "cron"
"""The queue in which schedules wait for their moment."""
CATEGORY: Final = ".cron"
"""What the category of a schedule's own stream ends with."""
_MOST: Final = 100
"""Missed moments made up for by one append."""
_CLAIMED: Final = 64
_PUT_OFF: Final = 60 * SECOND
ON_TIME: Final = 60 * SECOND
"""A moment is not missed before it is this old; it matters where missed ones are left out (``catch_up="none"``)."""


@attrs.frozen(eq=False)
class Entry:
    """A schedule of an app, ready to be used."""

    agent: str
    schedule: Schedule
    #: The stream its inputs go to.
    stream: str
    #: Its own stream.
    control: str
    #: Tells its plan from that of other code.
    plan: str


class Schedules:
    """Plans and fires an app's schedules; every method but ``keep`` blocks. Raises ``DefinitionError`` or ``InputRefused``
    for an input that its agent cannot take.
    """

    def __init__(
        self,
        app: App,
        log: EventLog,
        owner: str,
        *,
        lease: Micros = 30 * SECOND,
        boundary: Callable[[str, str], None] = lambda name, stream: None,
    ) -> None:
        self._app, self._log, self._owner, self._lease, self._boundary = app, log, owner, lease, boundary
        entries = [_entry(app, agent.name, each) for agent in app.agents.values() for each in agent.schedules]
        self._entries = {entry.control: entry for entry in entries}
        self._categories = sorted({name + CATEGORY for name in app.agents})
        #: Nothing was due when it looked last.
        self.calm = not self._entries

    def __bool__(self) -> bool:
        return bool(self._entries)

    def plan(self) -> None:
        """Record the next moment of every schedule that is new or has changed; the others keep theirs."""
        for entry in self._entries.values():
            last, planned = self._planned(entry.control)
            if planned is not None and planned.plan == entry.plan:
                if planned.next_at is not None:
                    self._log.schedule.wake(CRON, entry.control, planned.next_at)
                continue
            # Somebody else who plans it at this moment wins; a plan that is lost is found missing at the next start or firing.
            next_at = next_after(entry.schedule, self._log.clock())
            self._log.append_batch([AppendRequest((self._control(entry, last, (), next_at),))])

    def fire(self, problems: Callable[[str, BaseException], None] = lambda doing, problem: None) -> int:
        """Deliver what is due; how many inputs. ``problems`` hears of an input id that was used before for something else."""
        now, schedule = self._log.clock(), self._log.schedule
        claims = schedule.claim_due(CRON, self._owner, now=now, until=now + self._lease, limit=_CLAIMED, categories=self._categories)
        delivered = 0
        for claim in claims:
            entry = self._entries.get(claim.name)
            if entry is None:  # code that knows it may be running elsewhere
                schedule.release([claim], now + _PUT_OFF, keep_wake=False)
                continue
            delivered += self._deliver(entry, claim, now, problems)
        self.calm = not claims
        return delivered

    def _deliver(self, entry: Entry, claim: Claim, now: Micros, problems: Callable[[str, BaseException], None]) -> int:
        last, planned = self._planned(entry.control)
        fence = Fence(CRON, claim.name, claim.token, release=True)
        if planned is None or planned.next_at is None or planned.next_at > now:
            next_at = planned.next_at if planned is not None and planned.next_at is not None else next_after(entry.schedule, now)
            part = self._control(entry, last, (), next_at) if planned is None else StreamAppend(entry.control, (), last, (Wake(CRON, planned.next_at),))
            self._log.append_batch([AppendRequest((part,), (fence,))])
            return 0
        moments = _due(entry, planned, planned.next_at, now)
        # Of more moments than one append takes the rest is due at once.
        next_at = next_after(entry.schedule, moments[-1] if len(moments) == _MOST else max(now, planned.next_at))
        inputs = [self._input(entry, planned, moment) for moment in moments]
        parts = [StreamAppend(stream, (event,), ANY, (Wake(TURNS, now, sooner=True),)) for stream, event in inputs]
        self._boundary("schedule.due", entry.control)
        (outcome,) = self._log.append_batch([AppendRequest((*_joined(parts), self._control(entry, last, tuple(moments), next_at)), (fence,))])
        if isinstance(outcome, EventIdConflict):
            problems(f"firing {entry.control}", outcome)
            (outcome,) = self._log.append_batch([AppendRequest((self._control(entry, last, (), next_at),), (fence,))])
            moments = []
        self._boundary("schedule.fired", entry.control)
        return 0 if isinstance(outcome, LogError) else len(moments)

    def _planned(self, control: str) -> tuple[int, facts.SchedulePlanned | None]:
        last: StoredEvent | None = next(iter(self._log.read(control, backwards=True, limit=1)), None)
        if last is None:
            return EMPTY, None
        planned: facts.SchedulePlanned = self._app.codec.decode_stored(last)
        return last.version, planned

    def _control(self, entry: Entry, last: int, delivered: tuple[Micros, ...], next_at: Micros | None) -> StreamAppend:
        received = _received(self._app, entry.agent, entry.schedule, next_at) if next_at is not None else None
        fact = facts.SchedulePlanned(entry.agent, entry.plan, delivered, next_at, entry.stream, received)
        event = self._app.codec.stage(fact, event_id=fact_id("schedule", entry.control, last))
        return StreamAppend(entry.control, (event,), last, (Wake(CRON, next_at),))

    def _input(self, entry: Entry, planned: facts.SchedulePlanned, moment: Micros) -> tuple[str, NewEvent]:
        stream, received = entry.stream, planned.input
        if received is None or moment != planned.next_at:
            received = _received(self._app, entry.agent, entry.schedule, moment)
        else:
            stream = planned.stream
        event_id = input_event_id(received.input_id)
        return stream, self._app.codec.stage(received, event_id=event_id, correlation=event_id)

    async def keep(self, problems: Callable[[str, BaseException], None], woken: Callable[[], None]) -> None:
        """Plan, then fire for ever. ``woken`` is called when something was delivered."""
        loop = asyncio.get_running_loop()
        planned, failures = False, 0
        while True:
            wait = 1.0
            try:
                if not planned:
                    await loop.run_in_executor(None, self.plan)
                    planned = True
                while await loop.run_in_executor(None, self.fire, problems) or not self.calm:
                    woken()
                wait = await loop.run_in_executor(None, self._seconds)
                failures = 0
            except LogUnavailable as problem:
                problems("firing schedules", problem)
                failures += 1
                wait = min(0.1 * 2**failures, 5.0)
            except LogError as problem:  # a control stream this code cannot read: said once in a while, and the agents go on
                problems("firing schedules", problem)
                self.calm, wait = True, 5.0
            await asyncio.sleep(wait)

    def _seconds(self) -> float:
        """Until the next moment, at most one: others may plan an earlier one meanwhile."""
        wake_at = self._log.schedule.next_wake(CRON)
        return 1.0 if wake_at is None else min(1.0, max(0.01, (wake_at - self._log.clock()) / SECOND))


def _entry(app: App, agent: str, schedule: Schedule) -> Entry:
    app.definitions[agent].payload(_received(app, agent, schedule, 0))
    _, _, payload = _encoded(app, schedule.input)
    key = schedule.key
    plan = f"{schedule} → {key} {hashlib.sha256(payload).hexdigest()[:16]}"
    return Entry(agent, schedule, stream_name(agent, key), stream_name(agent + CATEGORY, schedule.name), plan)


def _received(app: App, agent: str, schedule: Schedule, moment: Micros) -> facts.InputReceived:
    kind, schema, payload = _encoded(app, schedule.input)
    return facts.InputReceived(check_input_id(f"cron:{agent}:{schedule.name}:{shown(schedule, moment)}"), kind, schema, "msgpack", payload)


def _encoded(app: App, given: Any) -> tuple[str, int, bytes]:
    if hasattr(type(given), "__event_type__"):
        return app.codec.encode(given)
    return "", 0, app.codec.encode_value(given, Any)


def _due(entry: Entry, planned: facts.SchedulePlanned, first: Micros, now: Micros) -> list[Micros]:
    """The moments to deliver now. What other code had planned is delivered as it was planned, and no more of it."""
    schedule = entry.schedule
    if planned.plan != entry.plan:
        return [first]
    if schedule.catch_up == "all":
        return [first, *between(schedule, first, now, _MOST - 1)]
    latest = latest_until(schedule, first, now) or first
    return [latest] if schedule.catch_up == "last" or now - latest <= ON_TIME else []


def _joined(parts: list[StreamAppend]) -> list[StreamAppend]:
    """One part a stream."""
    joined: dict[str, StreamAppend] = {}
    for part in parts:
        known = joined.get(part.stream)
        joined[part.stream] = attrs.evolve(part, events=(*known.events, *part.events)) if known else part
    return list(joined.values())
