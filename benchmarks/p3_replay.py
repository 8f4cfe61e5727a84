"""P3: a replay that runs the agent's code again, on SQLite.

Measured: ``replay_stream`` over one stream of 1,000, 10,000 and 100,000 events: each activation (six events: input, model
answer, intent, end, attempt, outcome) is folded, its code is run again on the journal, and what it stages is encoded and
compared byte by byte. The stream is made as ``long_log`` says, and that every event came out *same* is checked. Events a
second of the process's own processor time, reading from the store included: a replay waits for nobody, and on a shared
machine the wall's clock measures the neighbours.

The bars are floors: 20,000 events a second at every length, and at the longest at least eight tenths of the rate at the
shortest, which says that nothing grows with what has been replayed already.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, Final

from intentlog.eventlog import open_log
from intentlog.replay import Verdict, replay_stream

from . import long_log
from .measuring import Line, alone, in_turns
from .sizes import Sizes, Told
from .stores import Sqlite, Store
from .workload import make_app

STORES: Final = (Sqlite.name,)
FLOOR: Final = 20_000.0
FLAT: Final = 0.8
_LEAST: Final = 20_000
"""Events replayed in one go at least, however short the stream: shorter times are not worth much."""


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    url = store.log("p3-replay")
    lengths = sizes.replayed
    told(f"making streams of {', '.join(f'{length:,}' for length in lengths)} events")
    events: dict[str, int] = alone("p3_replay:make", url=url, lengths=lengths)
    best = in_turns({_key(length): partial(_rate, url, _key(length), _key(lengths[0]), sizes.counts) for length in lengths}, sizes.rounds, told)

    found = []
    for length in lengths:
        rate = best[_key(length)]
        found.append(Line("P3", store.name, f"run again, {length:,} events", "a floor", f"{rate:,.0f}/s", f"{FLOOR:,.0f}/s", rate / FLOOR, 1.0))
    longest, shortest = best[_key(lengths[-1])], best[_key(lengths[0])]
    what, against = f"run again at {events[_key(lengths[-1])]:,} events", f"at {events[_key(lengths[0])]:,}"
    return [*found, Line("P3", store.name, what, against, f"{longest:,.0f}/s", f"{shortest:,.0f}/s", longest / shortest, FLAT)]


def _key(length: int) -> str:
    return f"of-{length}"


def _rate(url: str, key: str, warm: str, long: bool, turn: int) -> float:
    return float(alone("p3_replay:rerun", url=url, key=key, warm=warm, least=_LEAST if long else 1)["rate"])


def make(url: str, lengths: list[int]) -> dict[str, Any]:
    """Write the streams; their true lengths."""
    app, log = make_app(), open_log(url)
    written = {_key(length): long_log.write(app, log, _key(length), length) for length in lengths}
    log.close()
    return written


def rerun(url: str, key: str, warm: str, least: int) -> dict[str, Any]:
    """The contender: replay one stream as often as it takes to replay ``least`` events, behind a short one that makes the decoders."""
    app, log = make_app(), open_log(url, create=False, read_only=True)
    replay_stream(log, app, f"{long_log.AGENT}-{warm}")
    stream = f"{long_log.AGENT}-{key}"
    events, begun = 0, time.process_time()
    while events < least:
        replayed = replay_stream(log, app, stream)
        if replayed.verdict is not Verdict.SAME or replayed.events != log.head(stream) + 1:
            raise RuntimeError(f"{stream} was to be the same to its end: {replayed}")
        events += replayed.events
    seconds = time.process_time() - begun
    log.close()
    return {"rate": events / seconds}
