"""How things stand on one stream, for whoever asks from outside: with the app from a snapshot on, without it from the facts alone."""

from __future__ import annotations

from ..eventlog.codec import Codec
from ..eventlog.errors import Undecodable
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from ..eventlog.versions import EMPTY
from . import facts
from .app import App
from .evolve import take
from .run import RunState
from .streams import Folder, StreamState

_TYPES = frozenset(vars(fact)["__event_type__"] for fact in facts.FACTS)


def known_state(log: EventLog, stream: str, app: App) -> StreamState:
    """The fold of ``stream``: its latest snapshot and what came behind it, never more than a few rows at a time.

    Raises ``DefinitionError`` for an agent that the app does not have, ``Undecodable`` or ``ImpossibleHistory`` for a
    stream that its code cannot read.
    """
    agent = app.agent(category_of(stream))
    folder = Folder(app.definitions[agent.name])
    state = folder.restore(stream, log.snapshots.load([stream]).get(stream))
    for rows in log.rows(stream, after=state.version):
        state = folder.fold_next(state, rows)
    return state


def known_run(log: EventLog, stream: str, codec: Codec, app: App | None = None) -> tuple[RunState, int]:
    """What the runtime's facts of ``stream`` add up to, and the version they were read up to (-1: an empty stream)."""
    if app is not None:
        state = known_state(log, stream, app)
        return state.run, state.version
    run, version = RunState(), EMPTY
    for rows in log.rows(stream):
        for version, kind, schema, data, _, recorded_at in rows:
            if kind in _TYPES:
                run.at = version
                try:
                    fact = codec.decode(kind, schema, data)
                except Undecodable as problem:
                    raise problem.at(stream, version) from problem
                take(run, fact, recorded_at)
    return run, version
