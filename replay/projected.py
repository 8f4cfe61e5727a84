"""Projections of the code against the views in the log: which version is live, and whether the code still builds its rows.

A view is built again in memory, up to where its checkpoint stands, and held against what is stored. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..agents.app import App
from ..agents.compare import shown
from ..eventlog.errors import RetryableError
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.projecting.advancing import described
from ..eventlog.projecting.declared import Decoder, OnError, Projection
from .verdicts import Verdict

MOST_BYTES: Final = 256 << 20
"""Keys and values of a view that is built in memory."""


@attrs.frozen
class ProjectionReplay:
    """What was found out about one projection."""

    #: The view, as ``sums@v1``.
    view: str
    verdict: Verdict
    rows: int = 0
    #: The first row that differs, or empty.
    row: str = ""
    recorded: str = ""
    decided: str = ""
    #: Why the view could not be built.
    reason: str = ""


class _TooLarge(Exception):
    """How building stops before memory does."""


def replay_projections(log: EventLog, app: App) -> Iterator[ProjectionReplay]:
    """Each projection that the app declares and the log has a view of, and each live view that the app has no code for."""
    declared = {each.view: each for each in app.projections}
    pointed = log.views.pointed()
    for name in app.projections.names():
        live = pointed.get(name)
        if live is not None and live not in declared:
            newest = app.projections.find(name)
            decided = newest.view if newest is not None else "none"
            yield ProjectionReplay(live, Verdict.DIVERGED, recorded=f"{live} is live", decided=f"the code declares {decided}")
    for view, projection in sorted(declared.items()):
        position = log.checkpoints.load(view)
        if position:
            yield _held_against(log, app.projections.codec, projection, position)


def _held_against(log: EventLog, codec: Decoder | None, projection: Projection, position: int) -> ProjectionReplay:
    built = _Built()
    try:
        failed = _build(log, codec, projection, position, built)
    except _TooLarge:
        return ProjectionReplay(projection.view, Verdict.CANNOT, reason=f"the view is larger than {MOST_BYTES >> 20} MB, which is not built in memory")
    if failed:
        return ProjectionReplay(projection.view, Verdict.DIVERGED, recorded="every event before the checkpoint was taken", decided=failed)
    rows = 0
    stored = log.views.read(projection.view)
    for key, value in stored.items():
        rows += 1
        mine = built.values.pop(key, None)
        if mine != value:
            return ProjectionReplay(projection.view, Verdict.DIVERGED, rows, key, shown(value), "no such row" if mine is None else shown(mine))
    if log.checkpoints.load(projection.view) != position:
        return ProjectionReplay(projection.view, Verdict.CANNOT, reason="the view moved on while it was looked at; stop its follower, or try again")
    for key in sorted(built.values):
        return ProjectionReplay(projection.view, Verdict.DIVERGED, rows, key, "no such row", shown(built.values[key]))
    return ProjectionReplay(projection.view, Verdict.SAME, rows)


def _build(log: EventLog, codec: Decoder | None, projection: Projection, position: int, built: _Built) -> str:
    """Run the handler over everything up to ``position``; what it stopped at, or empty."""
    parked = {each.position for each in log.views.parked(projection.view)}
    for event in log.read_all(upto=position, types=projection.types):
        if event.position in parked:
            continue
        try:
            projection.handle(built, event, codec.decode_stored(event) if codec is not None else None)
        except (_TooLarge, RetryableError):
            raise
        except Exception as problem:  # whatever a handler raises is what the projection would stop at
            does = "stops at" if projection.on_error is OnError.STOP else "parks"
            return f"it {does} {_named(event)}: {described(problem)}"
    return ""


def _named(event: StoredEvent) -> str:
    return f"{event.stream} version {event.version} ({event.type})"


class _Built:
    """A view in memory."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self._size = 0

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put(self, key: str, value: bytes) -> None:
        before = self.values.get(key)
        self._size += len(value) - len(before) if before is not None else len(key) + len(value)
        if self._size > MOST_BYTES:
            raise _TooLarge
        self.values[key] = value

    def delete(self, key: str) -> None:
        before = self.values.pop(key, None)
        if before is not None:
            self._size -= len(key) + len(before)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        return iter(sorted((key, value) for key, value in self.values.items() if key.startswith(prefix)))
