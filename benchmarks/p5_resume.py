"""P5: cold resume of one key by a worker that has never seen it.

Measured: an input is recorded for a key with a long history. The clock runs from the moment the worker is told until the
agent's code asks the model: lease, snapshot, rows, fold, the code's first step. One key has 10,000 events and no snapshot;
the other 1,000,000 and a snapshot 499 events behind its end, the most that a worker with its usual settings leaves
unfolded. Both stand in one log, and every round is a process of its own. The server's and the system's caches are warm.

The bars are ceilings in milliseconds: 100 without, 20 with the snapshot; the best round of several counts. They are held
against a worker that has served one other key before, as one that takes over a dead worker's keys has. Beside them,
without a bar: a worker whose first key this is, which also makes the agent's decoders and looks at its code.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import attrs

from intentlog.agents import App, Committer, Input, ModelRequest, ModelResponse, Worker, WorkerSettings
from intentlog.agents.streams import Folder
from intentlog.agents.tuning import tune_for_serving
from intentlog.eventlog import EventLog, open_log

from . import long_log
from .measuring import Line, alone, in_turns
from .sizes import Sizes, Told
from .stores import Postgresql, Sqlite, Store
from .workload import AnswersAtOnce, asked, brief, make_app, record_inputs

STORES: Final = (Sqlite.name, Postgresql.name)
OTHER, SHORT, LONG = "other", "short", "long"
SHORT_BAR, LONG_BAR = 100.0, 20.0
"""Milliseconds."""
_UNFOLDED: Final = 499
_NO_MORE_SNAPSHOTS: Final = 1 << 60
"""So that every round finds the one that was made."""


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    url = store.log("p5-resume")
    told(f"making keys of {sizes.short_key:,} and {sizes.long_log:,} events")
    events: dict[str, int] = alone("p5_resume:make", url=url, short=sizes.short_key, long=sizes.long_log)
    keys = {"without a snapshot": (SHORT, SHORT_BAR), "with a snapshot": (LONG, LONG_BAR)}
    contenders = {f"{how}{when}": partial(_resumes, url, key, first) for when, first in _WHEN.items() for how, (key, _) in keys.items()}
    # The best figure of a contender is its largest.
    best = in_turns(contenders, sizes.rounds, told)

    def line(how: str, when: str) -> Line:
        (key, bar), ms = keys[how], 1_000 / best[f"{how}{when}"]
        held = None if when else 1.0
        return Line("P5", store.name, f"cold resume {how}{when}", f"{events[key]:,} events", f"{ms:,.1f} ms", f"{bar:,.0f} ms", ms / bar, held, ceiling=True)

    return [line(how, when) for when in _WHEN for how in keys]


#: What a line says of the worker → whether the key is its first.
_WHEN: Final = {"": False, ", the worker's first key": True}


def _resumes(url: str, key: str, first: bool, turn: int) -> float:
    return 1 / float(alone("p5_resume:resume", url=url, key=key, first=first, label=f"{key}-{first}-{turn}")["seconds"])


def make(url: str, short: int, long: int) -> dict[str, Any]:
    """Write the keys, and snapshots of the long one and of a third; how many events each has."""
    app, log = make_app(), open_log(url)
    events = {key: long_log.write(app, log, key, least) for key, least in ((OTHER, 2 * _UNFOLDED), (SHORT, short), (LONG, long))}
    folder = Folder(app.definitions[long_log.AGENT])
    for key in (OTHER, LONG):
        stream = f"{long_log.AGENT}-{key}"
        state = folder.empty(stream)
        for rows in log.rows(stream, upto=events[key] - 1 - _UNFOLDED):
            folder.fold(state, rows)
        log.snapshots.save(stream, folder.snapshot(state))
    log.close()
    return events


@attrs.define
class TakesTheTime(AnswersAtOnce):
    """The model, and when it was last asked."""

    asked_at: float = 0.0

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        self.asked_at = time.perf_counter()
        return await super().complete(request, idempotency_key=idempotency_key)


def resume(url: str, key: str, first: bool, label: str) -> dict[str, Any]:
    """The contender: resume one key, after another one unless it is to be the ``first``."""
    model = TakesTheTime()
    app = App([brief], models=model)
    # Inputs come through a door of their own: what it learns of a key, the worker's log does not know.
    door, log = open_log(url), open_log(url)
    told = [partial(record_inputs, app, door, [Input(long_log.AGENT, each, asked(1), label)]) for each in ([key] if first else [OTHER, key])]
    tune_for_serving()  # as ``eventlog run`` and ``eventlog worker`` do
    seconds = asyncio.run(_resume(app, log, model, told))
    log.close()
    door.close()
    return {"seconds": seconds}


async def _resume(app: App, log: EventLog, model: TakesTheTime, told: Sequence[Callable[[], None]]) -> float:
    """Seconds from telling the worker of the last input to the model's being asked."""
    committer = Committer(log)
    worker = Worker(app, log, owner="bench", committer=committer, settings=WorkerSettings(snapshot_every=_NO_MORE_SNAPSHOTS))
    began = 0.0
    serving = None
    for turns, tell in enumerate(told, 1):
        tell()
        began = time.perf_counter()
        worker.wake()
        serving = serving or asyncio.create_task(worker.run())
        while worker.turns_run < turns and not serving.done():  # noqa: ASYNC110 - the worker has no event for it
            await asyncio.sleep(0.001)
    worker.stop()
    if serving is not None:
        await serving
    committer.close()
    return model.asked_at - began
