"""Many streams replayed, one after the other, each read once and then forgotten. Read-only, without a client of any kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ..agents import facts
from ..agents.app import App
from ..agents.approvals_answers import CATEGORY as ANSWERS
from ..agents.definitions import Definitions
from ..agents.firing import CATEGORY
from ..agents.streams import Folder
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from ..eventlog.registry import event_name
from .aggregates import categories, definitions_for, replay_aggregate
from .allowing import Allowance
from .errors import EmptyStream
from .fold import head_of
from .holes import whole
from .streams import replay_rows
from .unseen import as_far_as_seen
from .verdicts import StreamReplay, Verdict

_FACTS: Final = frozenset(event_name(fact)[0] for fact in facts.FACTS)


def replay_stream(log: EventLog, app: App, stream: str) -> StreamReplay:
    """Run the agent's code again over one stream's history; raises ``NoSuchStream``."""
    return next(replay_all(log, app, [stream]))


def replay_all(
    log: EventLog,
    app: App,
    streams: Iterable[str] | None = None,
    *,
    category: str | None = None,
    allowances: Sequence[Allowance] = (),
    progress: Callable[[StreamReplay], None] = lambda replayed: None,
) -> Iterator[StreamReplay]:
    """Replay ``streams``, or a category, or the whole log: a verdict a stream, as they come (S-9.1, S-9.2).

    Divergences that ``allowances`` cover are passed over. ``progress`` is called with each stream's. Memory does not grow with
    the number of streams nor with their length. Raises ``NoSuchStream`` for a name in ``streams`` that the log does not have.
    Not to be called while an event loop runs in the same thread: agent code gets a loop of its own, in which nothing is
    ever awaited.
    """
    if streams is None:
        streams = replayable(log, app, log.streams(f"{category}-" if category is not None else ""))
    folders: dict[str, tuple[Definitions, Folder]] = {}
    for name in categories(app):
        if (definitions := definitions_for(app, name)) is not None:
            folders[name] = definitions, Folder(definitions)
    with asyncio.Runner() as runner:
        for stream in streams:
            replayed = as_far_as_seen(log, runner.run(_replay(log, app, folders, stream, allowances)))
            progress(replayed)
            yield replayed


def runs(log: EventLog, app: App, streams: Iterable[str]) -> Iterator[str]:
    """Those of ``streams`` that an agent's code wrote."""
    planned = {ANSWERS, *(name + CATEGORY for name in app.agents)}  # the streams of schedules
    return (stream for stream in streams if category_of(stream) not in planned and _is_run(log, app, stream))


def replayable(log: EventLog, app: App, streams: Iterable[str]) -> Iterator[str]:
    """Those of ``streams`` that an agent's code wrote, or that the app has an aggregate for."""
    known = {each for each in categories(app) if each not in app.agents}
    for stream in streams:
        if category_of(stream) in known:
            yield stream
        else:
            yield from runs(log, app, [stream])


def _is_run(log: EventLog, app: App, stream: str) -> bool:
    """Whether an agent wrote it. A plain aggregate's stream begins with an event that is none of the runtime's."""
    if category_of(stream) in app.agents:
        return True
    first = next(iter(log.read(stream, limit=1)), None)
    return first is not None and first.type in _FACTS


async def _replay(log: EventLog, app: App, folders: dict[str, tuple[Definitions, Folder]], stream: str, allowances: Sequence[Allowance]) -> StreamReplay:
    """Never waits. It is a coroutine because agent code may ask for the running loop, as it can in the worker."""
    try:
        head_of(log, stream)
    except EmptyStream as problem:
        return StreamReplay(stream, Verdict.CANNOT, reason=str(problem))
    found = folders.get(category_of(stream))
    if found is None:
        return StreamReplay(stream, Verdict.CANNOT, reason=f"the app has no agent {category_of(stream)!r}; it has: {', '.join(folders)}")
    definitions, folder = found
    try:
        snapshot = log.snapshots.load([stream]).get(stream)
        if category_of(stream) not in app.agents:
            return replay_aggregate(definitions, folder, stream, whole(stream, log.rows(stream)), snapshot=snapshot, allowances=allowances)
        return replay_rows(app, folder, stream, whole(stream, log.rows(stream)), log, snapshot=snapshot, allowances=allowances)
    finally:
        for started in asyncio.all_tasks() - {asyncio.current_task()}:
            started.cancel()  # before their first step: what agent code starts on the side does not run here
