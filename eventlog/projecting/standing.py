"""Which views there are, which is live, and how far each is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import attrs

from ..clock import Micros
from ..log import EventLog
from .declared import Projection, Projections, version_in

_MOST_COUNTED: Final = 100_000


@attrs.frozen
class Standing:
    """One version of a projection, as it stands in the log."""

    name: str
    version: int
    view: str
    #: Whether readers of ``name`` see it.
    live: bool
    #: Its checkpoint; 0 for one that is declared and was never run.
    position: int
    #: Where the log is complete now.
    end: int
    #: Events it was told to step over.
    parked: int
    #: The code for it, where somebody declares it.
    declared: Projection | None = None

    @property
    def behind(self) -> int:
        """Positions between its checkpoint and the end of the log: 0 when it is level, below 0 when it is ahead of the log."""
        return self.end - self.position


@attrs.frozen
class Lag:
    """What a view has not seen yet."""

    events: int
    #: Whether there are more than were counted.
    more: bool
    #: How long ago the oldest of them was appended; 0 when there is none.
    age: Micros


def standings(log: EventLog, projections: Projections | Iterable[Projection] = (), name: str | None = None) -> list[Standing]:
    """Every version that the log has or that is declared, by name and version; only those of ``name`` when it is given."""
    declared = {each.view: each for each in projections}
    reached, pointed = log.checkpoints.all(), log.views.pointed()
    parked = Counter(each.projection for each in log.views.parked())
    end = log.last_position()
    found = []
    for view in {*declared, *reached, *pointed.values(), *parked}:
        known = version_in(view)
        if known is None or name not in (None, known[0]):
            continue
        live = pointed.get(known[0]) == view
        found.append(Standing(*known, view, live, reached.get(view, 0), end, parked[view], declared.get(view)))
    return sorted(found, key=lambda each: (each.name, each.version))


def lag_of(log: EventLog, standing: Standing) -> Lag:
    """Events that the view has yet to see, of the types it wants where its code is known; counted up to 100 000."""
    types = standing.declared.types if standing.declared is not None else ()
    count, oldest = 0, None
    for event in log.read_all(after=standing.position, upto=standing.end, types=types, limit=_MOST_COUNTED + 1, payloads=False):
        count += 1
        oldest = event.recorded_at if oldest is None else oldest
    age = 0 if oldest is None else max(log.clock() - oldest, 0)
    return Lag(min(count, _MOST_COUNTED), count > _MOST_COUNTED, age)
