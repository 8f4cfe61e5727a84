"""A process that follows a log from its checkpoint, run by the tests and killed by them.

``python -m tests.eventlog.postgres.chaos.tails URL NAME FOLDER LIFE KIND``. A tail of kind ``lines`` writes what it is
shown to a file of this life's, then saves its checkpoint; one of kind ``view`` keeps both in the log's database, in one
transaction. It ends when it has come to the position that stands in FOLDER/end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from intentlog.eventlog import EventLog, StoredEvent, open_log
from intentlog.eventlog.log import View
from intentlog.eventlog.tail import tail
from tests.eventlog.postgres.chaos.checking import Entry, Life

#: Few, so that there are many checkpoints to be killed between.
BATCH = 40
COUNT = "count"


def entries_of(events: Iterable[StoredEvent]) -> list[Entry]:
    return [Entry(event.position, event.stream, event.version, event.event_id.hex()) for event in events]


def follow(log: EventLog, name: str, folder: Path, life: str, kind: str) -> None:
    """Until the end that the folder names."""
    begun = reached = log.checkpoints.load(name)

    def ended() -> bool:
        end = folder / "end"
        return end.exists() and reached >= int(end.read_text())

    with (folder / f"{name}-{life}").open("w", buffering=1) as out:
        out.write(f"{begun}\n")
        for events in tail(log, after=begun, stop=ended, batch=BATCH):
            entries, reached = entries_of(events), events[-1].position
            if kind == "view":
                keep(log, name, entries)
            else:
                out.write("".join(json.dumps(entry) + "\n" for entry in entries))
                log.checkpoints.save(name, reached)


def keep(log: EventLog, name: str, entries: list[Entry]) -> None:
    """One more row an event, and the checkpoint, in one transaction."""
    with log.views.transaction(name) as view:
        before = int(view.get(COUNT) or b"0")
        for number, entry in enumerate(entries, before + 1):
            view.put(f"row-{number:09d}", json.dumps(entry).encode())
        view.put(COUNT, str(before + len(entries)).encode())
        view.checkpoint(entries[-1].position)


def kept(view: View) -> Life:
    """Everything a tail of kind ``view`` has kept over all its lives, as one life."""
    return Life(0, [Entry(*json.loads(value)) for _, value in view.items("row-")])


def lives(folder: Path, name: str) -> list[Life]:
    """What a tail of kind ``lines`` was shown, life by life; a line that was cut off by a kill was not taken down."""
    return [_life(folder / f"{name}-{life}") for life in range(1, len(list(folder.glob(f"{name}-*"))) + 1)]


def _life(path: Path) -> Life:
    def whole() -> Iterator[str]:
        return (line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))

    begun, *shown = whole()
    return Life(int(begun), [Entry(*json.loads(line)) for line in shown])


if __name__ == "__main__":
    url, name, place, life, kind = sys.argv[1:]
    with closing(open_log(url, create=False)) as opened:
        follow(opened, name, Path(place), life, kind)
