"""Schedules: when an agent gets an input by the clock, and the moments that follow from that. Pure; who fires them is ``firing``.

The rules at a change of the clocks, for ``cron``:

* Fixed hours mean local times, and each happens once. One that the spring gap swallows happens at the first moment after it,
  together with whatever else is due then; one that the autumn brings twice happens the first time.
* An expression that names every hour (``*``) means a steady rhythm: it goes on in real time, without a hole or a double beat.

``every`` counts in real time from 1970-01-01 UTC, so that a restart does not shift it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
from cronsim import CronSim, CronSimError

from ..eventlog.clock import SECOND, Micros, from_datetime, from_timedelta, to_datetime
from ..eventlog.errors import InvalidName
from ..eventlog.names import check_key
from .errors import DefinitionError

CATCH_UP: Final = ("last", "all", "none")
_EVERY_HOUR: Final = frozenset(range(24))
_BACK: Final = tuple(timedelta(minutes=n) for n in (1, 15, 60, 6 * 60, 24 * 60, 8 * 24 * 60, 32 * 24 * 60, 367 * 24 * 60, 5 * 367 * 24 * 60))
"""How far back to look for the latest moment, nearest first."""


@attrs.frozen(eq=False)
class Schedule:
    """Give ``key`` of the agent ``input`` at certain moments; made by ``cron`` and ``every``."""

    #: Unique in its agent: the firings are recorded under it.
    name: str
    key: str
    input: Any
    #: Five fields (or six, seconds first); empty for ``every``.
    expression: str
    zone: str
    #: Microseconds between firings; 0 for ``cron``.
    period: Micros
    #: What happens to moments that passed while nothing ran: ``last`` (the latest is made up for), ``all`` or ``none``.
    catch_up: str

    def __str__(self) -> str:
        return f"every {timedelta(microseconds=self.period)}" if self.period else f"{self.expression} {self.zone}"


def cron(expression: str, *, key: str, input: Any, zone: str = "UTC", name: str | None = None, catch_up: str = "last") -> Schedule:
    """At the local times of ``zone`` that a cron expression names, for example ``"0 9 * * 1-5"``.

    ``name`` is the key unless given. Raises ``DefinitionError`` for an expression or a zone that cannot be.
    """
    made = _checked(Schedule(key if name is None else name, key, input, " ".join(expression.split()), zone, 0, catch_up))
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise DefinitionError(f"schedule {made.name!r}: there is no time zone {zone!r}; name one as the IANA database does, like 'Europe/Berlin'") from problem
    try:
        never = next_after(made, 0) is None
    except CronSimError as problem:
        raise DefinitionError(
            f"schedule {made.name!r}: {expression!r} is no cron expression: {problem}. Five fields: minute hour day month weekday, '0 9 * * 1-5'"
        ) from problem
    if never:
        raise DefinitionError(f"schedule {made.name!r}: {expression!r} never comes to pass")
    return made


def every(length: timedelta, *, key: str, input: Any, name: str | None = None, catch_up: str = "last") -> Schedule:
    """Once in every ``length`` (at least a second), counted from 1970-01-01 UTC. Raises ``DefinitionError``."""
    made = _checked(Schedule(key if name is None else name, key, input, "", "UTC", from_timedelta(length), catch_up))
    if made.period < SECOND:
        raise DefinitionError(f"schedule {made.name!r}: the time between two firings must be at least a second, not {length}")
    return made


def _checked(made: Schedule) -> Schedule:
    for name in (made.key, made.name):
        try:
            check_key(name)
        except InvalidName as problem:
            raise DefinitionError(f"schedule {made.name!r}: {problem}") from None
    if len(made.name.encode()) > 200:
        raise DefinitionError(f"schedule {made.name!r:.80}: its name must not be longer than 200 UTF-8 bytes; give name=")
    if made.catch_up not in CATCH_UP:
        raise DefinitionError(f"schedule {made.name!r}: catch_up must be one of {', '.join(CATCH_UP)}, not {made.catch_up!r}")
    return made


# ── the moments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def next_after(schedule: Schedule, after: Micros) -> Micros | None:
    """The first moment of ``schedule`` later than ``after``; ``None`` when there is none for fifty years."""
    return next(moments(schedule, after), None)


def moments(schedule: Schedule, after: Micros) -> Iterator[Micros]:
    """Every moment later than ``after``, in order."""
    if schedule.period:
        return _beats(schedule.period, after)
    return _rhythm(schedule, after) if _names_every_hour(schedule.expression) else _local_times(schedule, after)


def latest_until(schedule: Schedule, after: Micros, upto: Micros) -> Micros | None:
    """The last moment with ``after < moment <= upto``, found without going through all those before it."""
    if schedule.period:
        latest = upto // schedule.period * schedule.period
        return latest if latest > after else None
    for back in _BACK:
        start = max(after, upto - from_timedelta(back))
        found: Micros | None = None
        for moment in moments(schedule, start):
            if moment > upto:
                break
            found = moment
        if found is not None or start == after:
            return found
    return None


def between(schedule: Schedule, after: Micros, upto: Micros, most: int) -> list[Micros]:
    """The first ``most`` moments with ``after < moment <= upto``."""
    found = []
    for moment in islice(moments(schedule, after), most):
        if moment > upto:
            break
        found.append(moment)
    return found


def shown(schedule: Schedule, moment: Micros) -> str:
    """``moment`` as the schedule's zone writes it, with its offset: no two moments look alike, whatever the clocks do."""
    return to_datetime(moment).astimezone(_zone(schedule.zone)).isoformat()


def _beats(period: Micros, after: Micros) -> Iterator[Micros]:
    moment = after // period * period
    while True:
        moment += period
        yield moment


def _rhythm(schedule: Schedule, after: Micros) -> Iterator[Micros]:
    fields = schedule.expression.split()
    fields[-4] = "*"  # the library goes by real time where the hour is a star
    if len(fields) == 5:
        fields.insert(0, "0")
    for moment in CronSim(" ".join(fields), to_datetime(after).astimezone(_zone(schedule.zone))):
        yield from_datetime(moment)


def _local_times(schedule: Schedule, after: Micros) -> Iterator[Micros]:
    """Local times are counted without a zone and then placed, so that each is met once.

    No local time up to that of ``after`` can lie behind it; and what lies behind it grows with the local time, so that
    equal neighbours are what a gap pushed together.
    """
    zone = _zone(schedule.zone)
    for local in CronSim(schedule.expression, to_datetime(after).astimezone(zone).replace(tzinfo=None)):
        moment = _placed(local, zone)
        if moment > after:
            after = moment
            yield moment


def _placed(local: datetime, zone: ZoneInfo) -> Micros:
    """The first moment at which clocks in ``zone`` show ``local`` or, where they never do, the first one later than that."""
    aware = local.replace(tzinfo=zone, fold=0)
    moment = aware.astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == local:
        return from_datetime(moment)
    early, late = from_datetime(local.replace(tzinfo=zone, fold=1)) // SECOND, from_datetime(moment) // SECOND
    early, late = min(early, late), max(early, late)
    offset = to_datetime(late * SECOND).astimezone(zone).utcoffset()
    while late - early > 1:
        middle = (early + late) // 2
        if to_datetime(middle * SECOND).astimezone(zone).utcoffset() == offset:
            late = middle
        else:
            early = middle
    return late * SECOND


@lru_cache(maxsize=256)
def _names_every_hour(expression: str) -> bool:
    return set(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)).hours) == _EVERY_HOUR


def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
