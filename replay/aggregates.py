"""Streams of plain aggregates, which agents load and emit to: folded like an agent's, by the class that the app has for their category.

No code decided what stands in them where they stand, so there are no turns to run again: what is compared is their state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..agents.aggregate import Aggregate
from ..agents.app import App
from ..agents.defining import agent
from ..agents.definitions import Definitions
from ..agents.errors import ImpossibleHistory
from ..agents.reading_streams import Loaded, PlainFolder
from ..agents.streams import Folder
from ..eventlog.errors import Undecodable
from ..eventlog.events import Row
from ..eventlog.log import Snapshot
from ..eventlog.names import category_of
from .allowing import Allowance, allowance_for
from .errors import BrokenHistory, UnknownAgent
from .kept import Kept
from .verdicts import Excused, StreamReplay, Verdict


def aggregate_of(app: App, category: str) -> type[Aggregate] | None:
    """The class of the plain aggregates whose streams stand under ``category``; ``None`` where an agent's do, or nobody's."""
    return None if category in app.agents else next((each for each in app.aggregates if each.__category__ == category), None)


def categories(app: App) -> list[str]:
    """Of the app's agents, and of the plain aggregates that it knows."""
    return sorted({*app.agents, *(each.__category__ for each in app.aggregates if each.__category__)})


def definitions_for(app: App, category: str) -> Definitions | None:
    """What streams of ``category`` are folded by; ``None`` when the app has neither an agent nor an aggregate for them."""
    kind = aggregate_of(app, category)
    if kind is None:
        return app.definitions.get(category)
    return Definitions(agent(category, state=kind)(_nobody), app.codec, app.tools)


async def _nobody(ctx: Any) -> None:
    """In the place of an agent's code: an aggregate has none."""


def folder_of(app: App, stream: str) -> Folder:
    """The folder of the stream's agent or aggregate; raises ``UnknownAgent``."""
    definitions = definitions_for(app, category_of(stream))
    if definitions is None:
        raise UnknownAgent(f"{stream}: this app has no agent {category_of(stream)!r}; it has: {', '.join(categories(app))}")
    return Folder(definitions)


def snapshot_of(app: App, stream: str, rows: Iterable[Row]) -> Snapshot | None:
    """The aggregate of a whole stream as a snapshot; ``None`` when it is none of the app's. Raises what folding raises."""
    kind = aggregate_of(app, category_of(stream))
    if kind is None:
        return None
    folder = PlainFolder(app.codec, kind)
    return folder.snapshot(folder.fold(stream, Loaded(kind(), -1), rows))


def replay_aggregate(
    definitions: Definitions, folder: Folder, stream: str, chunks: Iterable[Sequence[Row]], *, snapshot: Snapshot | None, allowances: Sequence[Allowance]
) -> StreamReplay:
    """Fold a stream's whole history, and hold its state against the one that was kept of it, if any was (S-8.1)."""
    state, kept, excused = folder.empty(stream), Kept(definitions, snapshot, plain=True), []
    try:
        for rows in chunks:
            for part in _parted(rows, snapshot.version if snapshot is not None else -1):
                folder.fold(state, part)
                found = kept.compared(state, part[-1]) if kept.is_due(state.version) else None
                if found is None:
                    continue
                allowance = allowance_for(allowances, found)
                if allowance is None:
                    return StreamReplay(stream, Verdict.DIVERGED, state.version + 1, divergence=found, state=kept.check)
                excused.append(Excused(allowance.line, found))
    except (BrokenHistory, Undecodable, ImpossibleHistory) as problem:
        return StreamReplay(stream, Verdict.CANNOT, state.version + 1, reason=str(problem), state=kept.check)
    return StreamReplay(stream, Verdict.ALLOWED if excused else Verdict.SAME, state.version + 1, excused=tuple(excused), state=kept.check)


def _parted(rows: Sequence[Row], version: int) -> Iterable[Sequence[Row]]:
    """``rows`` up to ``version``, and those behind it."""
    behind = next((place for place, row in enumerate(rows) if row[0] > version), len(rows))
    return [part for part in (rows[:behind], rows[behind:]) if part]
