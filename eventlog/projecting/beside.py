"""A new version of a projection: built beside the live one, made live in one step, and the old one dropped when nobody needs it."""

from __future__ import annotations

from typing import Final

import attrs

from ..errors import ProjectionRefused
from ..log import EventLog
from .advancing import Progress, Run, Told, standing_of
from .declared import Decoder, Projection, view_of

_TRIES: Final = 100
"""Times that a swap catches up anew because the live view moved in the meantime."""


def rebuild_beside(
    log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 2_000, restart: bool = False, progress: Told = None
) -> Progress:
    """Build this version's view beside the live one, from the first event to where the log is complete now.

    The live view is neither read nor written; appends and its own follower go on. One that was begun before is carried on
    from its checkpoint, unless ``restart``. Several at once share the work. What this call handled and parked: with
    ``parked`` above 0 the view lacks events. Raises ``ProjectionRefused`` when this version is the live one, and errors as
    in ``catch_up``.
    """
    if log.views.pointed().get(projection.name) == projection.view:
        raise ProjectionRefused(
            f"{projection.view} is live, so nothing can be built beside it under that name. Give the new code "
            f"version={projection.version + 1}; or rebuild it in place, where readers see it grow: "
            f"eventlog projections rebuild {projection.name} --version {projection.version} --in-place"
        )
    if restart:
        log.views.clear(projection.view)
    reached, end = standing_of(log, projection)
    return Run(log, projection, codec).through(reached, end, batch=batch, told=progress)


@attrs.frozen
class Swapped:
    """What a swap did."""

    name: str
    #: The view that was live before; None when there was none.
    old: str | None
    new: str
    #: Checkpoint of the new view when it became live.
    position: int


def swap(log: EventLog, projection: Projection, *, codec: Decoder | None = None, batch: int = 500, lacking: bool = False, progress: Told = None) -> Swapped:
    """Make this version the live one: it catches up first, then the name changes in one step for every reader.

    The old view stays as it is, and a swap back to it is one more ``swap``. Raises ``ProjectionRefused`` when the view has
    parked events that the live one does not lack (unless ``lacking``), or when the live view moves on faster than this
    one can follow; errors as in ``catch_up``. The live view then is live as before.
    """
    for _ in range(_TRIES):
        old = log.views.pointed().get(projection.name)
        reached, end = standing_of(log, projection)
        done = Run(log, projection, codec).through(reached, end, batch=batch, told=progress)
        if old == projection.view:
            return Swapped(projection.name, old, projection.view, done.position)
        if not lacking:
            _check_whole(log, projection.view, old)
        if log.views.point(projection.name, projection.view, expected=old):
            return Swapped(projection.name, old, projection.view, done.position)
    raise _behind(log, projection.name, projection.view)


def swap_as_it_is(log: EventLog, name: str, version: int, *, lacking: bool = False) -> Swapped:
    """``swap`` without the version's code: for going back to one that is being kept up elsewhere.

    Raises ``ProjectionRefused`` when its view is behind the live one, since nothing here can bring it up.
    """
    view = view_of(name, version)
    old, position = log.views.pointed().get(name), log.checkpoints.load(view)
    if not position:
        raise ProjectionRefused(f"There is no view {view}. Build it first: eventlog projections rebuild {name} --version {version} --app module:attribute")
    if not lacking:
        _check_whole(log, view, old)
    if old != view and not log.views.point(name, view, expected=old):
        raise _behind(log, name, view)
    return Swapped(name, old, view, position)


def _check_whole(log: EventLog, view: str, old: str | None) -> None:
    lacking = {parked.position: parked for parked in log.views.parked(view)}
    if old is not None:
        for parked in log.views.parked(old):
            lacking.pop(parked.position, None)
    if lacking:
        first = lacking[min(lacking)]
        name = view.rpartition("@")[0]
        raise ProjectionRefused(
            f"{view} lacks {len(lacking)} parked event{'s' if len(lacking) > 1 else ''}{'' if old is None else f' that {old} has'}, first "
            f"{first.stream} version {first.version} (position {first.position}): {first.error}. Mend the handler and have them handled: "
            f"eventlog projections parked {name} --retry. Or swap all the same: --lacking"
        )


def _behind(log: EventLog, name: str, view: str) -> ProjectionRefused:
    live = log.views.pointed().get(name, view)
    here, there, end = log.checkpoints.load(view), log.checkpoints.load(live), log.last_position()
    if there > end:
        return ProjectionRefused(
            f"The live view {live} is at position {there}, ahead of the log, which ends at {end}: the log was restored from an older backup. "
            f"Build the live view again first: eventlog projections rebuild {name} --version {live.rpartition('@v')[2]} --in-place"
        )
    return ProjectionRefused(
        f"{view} is at position {here}, behind the live view {live} at {there}, so a swap would take readers back in time. "
        f"Let it catch up, and swap again: eventlog projections swap {name} --version {view.rpartition('@v')[2]} --app module:attribute"
    )


def drop(log: EventLog, name: str, version: int) -> None:
    """Remove a version's rows, its checkpoint and its parked events. Raises ``ProjectionRefused`` for the live version.

    Stop whatever still follows with that version first: its follower would begin to build it again.
    """
    view = view_of(name, version)
    if log.views.pointed().get(name) == view:
        raise ProjectionRefused(f"{view} is live: its readers would find nothing. Swap another version in first: eventlog projections swap {name}")
    if view not in log.checkpoints.all() and not log.views.parked(view):
        raise ProjectionRefused(f"There is no view {view} to drop. eventlog projections list shows those there are.")
    log.views.clear(view)
    if log.views.pointed().get(name) == view:
        raise ProjectionRefused(
            f"{view} became live while it was being dropped, and is empty now. Swap the version back in that was live before, or build this one again: "
            f"eventlog projections rebuild {name} --version {version} --in-place"
        )
