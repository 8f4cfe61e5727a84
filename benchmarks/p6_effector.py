"""P6: the effector, a replica as ``eventlog effector`` runs it, with a tool that does nothing.

Measured: (a) intents are staged, one on each of many keys; a replica with 64 keys in flight carries them out. The clock runs
from its start, with the log open, to the last settlement's commit. (b) The same intents, shared by three replicas. (c) A
log on which nothing happens but one intent at a time: from the commit that stages it to the commit that settles it, the
median; worker and effector in one process, and each in a process of its own.

Bound of (a): the rows that the replica has just written, same bytes, into the same table with the same indexes beside the same
events: for every 100 intents an insert of the attempts with its commit, then one of the settlements. No lease, no tail. Beside it,
without a bar: the calls that the replica makes on its log, made again by nobody (``retelling.py``).

The bars: 0.3 of the bound; 15 ms. How three replicas compare with one informs only.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from intentlog.agents import Input
from intentlog.agents.tuning import tune_for_serving
from intentlog.effector.measures import EffectorSettings
from intentlog.effector.on_log import OnLog
from intentlog.effector.process import Process
from intentlog.effector.replica import Replica
from intentlog.effector.settings import Settings
from intentlog.effector.tool_registry import Registry
from intentlog.eventlog import Appended, AppendRequest, EventLog, open_log
from intentlog.eventlog.log import Outcome

from .bare import bare
from .measuring import ContenderFailed, Line, alone, in_turns, ready, together
from .p1_activations import CALLS, record, run_worker
from .retelling import listening, retell
from .sizes import Sizes, Told
from .stores import Postgresql, Store
from .workload import asked, make_app, record_inputs

STORES: Final = (Postgresql.name,)
BAR, IDLE_BAR_MS = 0.3, 15.0
REPLICAS: Final = 3
KEYS_IN_FLIGHT: Final = 64
INTENTS_A_COMMIT: Final = 100
"""Of the bound."""
STAGED, SETTLED = "intent.staged", "intent.settled"
BEFORE: Final = ("input.received", "model_call.cached", "intent.staged", "activation.suspended")
_PAUSE: Final = (0.05, 0.15)
"""Seconds between two intents on an idle log."""
_PATIENCE: Final = 30.0


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    intents = sizes.intents
    refused: list[int] = []
    contenders = {
        "one": partial(_replicas, store, intents, 1, refused),
        "bound": partial(_bound, store, intents),
        "calls": partial(_calls, store, intents),
        "more": partial(_replicas, store, intents, REPLICAS, refused),
    }
    best = in_turns(contenders, sizes.rounds, told)
    told("an idle log, one process")
    at_home = alone("p6_effector:one_process", url=store.log("p6-home"), intents=sizes.idle_intents)["ms"]
    told("an idle log, worker and effector apart")
    apart = _apart(store.log("p6-apart"), sizes.idle_intents)

    note = f"P6: {sum(refused)} settlements of {len(refused) * intents:,} were refused: two replicas had carried out the same intent" if any(refused) else ""

    def line(what: str, against: str, ours: str, theirs: str, bar: float | None) -> Line:
        return Line("P6", store.name, what, against, f"{best[ours]:,.0f}/s", f"{best[theirs]:,.0f}/s", best[ours] / best[theirs], bar, note=note)

    def idle(how: str, ms: float) -> Line:
        return Line("P6", store.name, "staged to settled, idle", how, f"{ms:,.1f} ms", f"{IDLE_BAR_MS:,.0f} ms", ms / IDLE_BAR_MS, 1.0, ceiling=True)

    return [
        line("intents settled", "the raw bound", "one", "bound", BAR),
        line(CALLS, "the raw bound", "calls", "bound", None),
        line(f"intents settled, {REPLICAS} replicas", "one replica", "more", "one", None),
        idle("worker and effector in one process", at_home),
        idle("worker and effector apart", apart),
    ]


def _replicas(store: Store, intents: int, replicas: int, refused: list[int], turn: int) -> float:
    url = store.log(f"p6-{replicas}-replicas{turn}")
    alone("p6_effector:stage", url=url, intents=intents)
    ran = together([("p6_effector:replica", {"url": url})] * replicas)
    settled = sum(each["settled"] for each in ran)
    if settled != intents:
        raise ContenderFailed(f"{replicas} replicas settled {settled} of {intents} intents")
    refused.append(sum(each["refused"] for each in ran))
    return intents / float(max(each["ended"] for each in ran) - min(each["began"] for each in ran))


def _bound(store: Store, intents: int, turn: int) -> float:
    source, url = store.log(f"p6-1-replicas{turn}"), store.log(f"p6-bound{turn}")
    alone("p6_effector:stage", url=url, intents=intents)
    return intents / float(alone("p6_effector:bound", source=source, url=url, intents=intents)["seconds"])


def _calls(store: Store, intents: int, turn: int) -> float:
    url, again = store.log(f"p6-heard{turn}"), store.log(f"p6-again{turn}")
    for each in (url, again):
        alone("p6_effector:stage", url=each, intents=intents)
    return intents / float(alone("p6_effector:calls", url=url, again=again)["seconds"])


def _apart(url: str, intents: int) -> float:
    """The median in milliseconds, the worker in one process and the effector in another."""
    open_log(url).close()
    staged, settled = together([(f"p6_effector:{name}", {"url": url, "intents": intents}) for name in ("idle_worker", "idle_effector")])
    return _median_ms(staged["at"], settled["at"])


def stage(url: str, intents: int) -> dict[str, Any]:
    """Have the worker stage an intent on each of as many keys."""
    app, log = make_app(), open_log(url)
    record(app, log, intents)
    seconds = asyncio.run(run_worker(app, log, intents))
    log.close()
    return {"seconds": seconds}


def bound(source: str, url: str, intents: int) -> dict[str, Any]:
    """The contender: the rows of the attempts and settlements, and nothing else."""
    tables = bare(source)
    rows = tables.written(but=BEFORE)
    tables.close()
    if len(rows) != 2 * intents:
        raise RuntimeError(f"{intents} attempts and as many settlements were expected, not {len(rows)} events")
    parts = [kind[begin : begin + INTENTS_A_COMMIT] for begin in range(0, intents, INTENTS_A_COMMIT) for kind in (rows[::2], rows[1::2])]
    tables = bare(url)
    seconds = tables.insert(parts)
    tables.close()
    return {"seconds": seconds}


class Noting:
    """A log that notes when events of one type became durable: stream → seconds of a clock that all processes share; and how many were refused."""

    def __init__(self, log: EventLog, kind: str, heard: Callable[[int], None] = lambda streams: None) -> None:
        self._log, self._kind, self._heard = log, kind, heard
        self.at: dict[str, float] = {}
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Outcome]:
        outcomes = self._log.append_batch(requests)
        now = time.perf_counter()
        for request, outcome in zip(requests, outcomes, strict=True):
            streams = [part.stream for part in request.parts if any(event.type == self._kind for event in part.events)]
            if streams and isinstance(outcome, Appended):
                self.at |= dict.fromkeys(streams, now)
                self._heard(len(self.at))
            elif streams:
                self.refused += 1
        return outcomes


def replica(url: str) -> dict[str, Any]:
    """The contender: settle what is staged, together with others."""
    log = Noting(open_log(url), SETTLED)
    made = _replica(log, until_idle=True)
    tune_for_serving()  # as every command that serves does
    ready()
    began = time.perf_counter()
    asyncio.run(made.serve())
    log.close()
    return {"began": began, "ended": max(log.at.values(), default=began), "settled": len(log.at), "refused": log.refused}


def calls(url: str, again: str) -> dict[str, Any]:
    """The contender: what a replica asks of its log, asked of another log with the same intents."""
    log, other = open_log(url), open_log(again)
    made = listening(log, lambda heard: asyncio.run(_replica(heard, until_idle=True).serve()))
    seconds = retell(made, other)
    log.close()
    other.close()
    return {"seconds": seconds}


def _replica(log: Any, *, until_idle: bool) -> Replica:
    """What ``eventlog effector`` makes of its options, on an open log."""
    app = make_app()
    given = {"registry": "benchmarks.workload:make_app", "max_concurrent_partitions": str(KEYS_IN_FLIGHT), "log_level": "error"}
    settings, problems = Settings.read(given)
    if problems:
        raise RuntimeError("; ".join(problems))
    return Replica(settings, Registry(app.tools, app.codec, tuple(sorted(app.agents))), OnLog(log), until_idle=until_idle)


def one_process(url: str, intents: int) -> dict[str, Any]:
    """The contender: worker and effector as ``eventlog run`` has them, on an idle log."""
    sender = Sender(url, intents)
    staged = Noting(open_log(url), STAGED)
    settled = Noting(cast("EventLog", staged), SETTLED, sender.heard)
    sender.serve(Process(make_app(), cast("EventLog", settled), "bench", effector_settings=EffectorSettings(concurrency=KEYS_IN_FLIGHT)))
    settled.close()
    return {"ms": _median_ms(staged.at, settled.at)}


def idle_worker(url: str, intents: int) -> dict[str, Any]:
    """The contender: a worker alone; when each intent was staged."""
    sender = Sender(url, intents)
    staged = Noting(open_log(url), STAGED, sender.heard)
    ready()
    sender.serve(Process(make_app(), cast("EventLog", staged), "bench", with_effector=False))
    staged.close()
    return {"at": staged.at}


def idle_effector(url: str, intents: int) -> dict[str, Any]:
    """The contender: a replica alone; when each intent was settled."""

    def heard(streams: int) -> None:
        if streams == intents:
            os.kill(os.getpid(), signal.SIGTERM)

    settled = Noting(open_log(url), SETTLED, heard)
    made = _replica(settled, until_idle=False)
    tune_for_serving()
    ready()
    with made.heeding_signals():
        asyncio.run(made.serve())
    settled.close()
    return {"at": settled.at}


class Sender:
    """Sends one input after another, each some time after what the last one caused was heard of."""

    def __init__(self, url: str, intents: int) -> None:
        self._url, self._intents = url, intents
        self._heard = threading.Semaphore(0)

    def heard(self, streams: int) -> None:
        """The next one may be sent."""
        self._heard.release()

    def serve(self, process: Process) -> None:
        """Run ``process`` until all has been heard of."""

        async def run() -> None:
            tune_for_serving()
            running = asyncio.create_task(process.run())
            await asyncio.to_thread(self._send)
            process.stop()
            await running

        asyncio.run(run())

    def _send(self) -> None:
        app, door = make_app(), open_log(self._url)
        for number in range(self._intents):
            time.sleep(random.uniform(*_PAUSE))
            record_inputs(app, door, [Input("finishing", f"k{number}", asked(number), f"i{number}")])
            if not self._heard.acquire(timeout=_PATIENCE):
                raise RuntimeError(f"nothing was heard of input {number} for {_PATIENCE:.0f} s")
        door.close()


def _median_ms(staged: dict[str, float], settled: dict[str, float]) -> float:
    return statistics.median((settled[stream] - at) * 1_000 for stream, at in staged.items())
