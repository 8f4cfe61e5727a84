"""A process full of writers, run by the tests: every thread appends in its own way and takes down what it is told.

``python -m tests.eventlog.postgres.chaos.writers URL FOLDER FIRST COUNT SEED``: writers number FIRST … FIRST + COUNT - 1,
until there is a file FOLDER/enough.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from intentlog.eventlog import ANY, EventLog, NewEvent, open_log
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Appended, AppendRequest, Duplicate, StreamAppend
from tests.eventlog.postgres.chaos.checking import Entry

SHARED = 20
new_id = id_maker()


class Writer:
    """One of them."""

    def __init__(self, log: EventLog, number: int, seed: int, out: IO[str]) -> None:
        self.log, self.number, self.out = log, number, out
        self.random = random.Random(f"{seed} {number}")
        self.own = -1

    def write(self, enough: Path) -> None:
        """Append in every way there is."""
        while not enough.exists():
            requests = self.random.choice([self._own, self._shared, self._wherever, self._spanning, self._several])()
            self.send(requests)
            if self.random.random() < 0.1:
                self.send(requests, again=True)

    def send(self, requests: Sequence[AppendRequest], *, again: bool = False) -> None:
        entries, refused = [], []
        for request, outcome in zip(requests, self.log.append_batch(requests), strict=True):
            assert not again or not isinstance(outcome, Appended), f"{request} was there and went in again"
            for index, part in enumerate(request.parts):
                if isinstance(outcome, Appended | Duplicate):
                    first, positions = outcome.first_versions[index], outcome.positions[index]
                    entries += [Entry(position, part.stream, first + n, part.events[n].event_id.hex()) for n, position in enumerate(positions)]
                else:
                    refused += [event.event_id.hex() for event in part.events]
                if isinstance(outcome, Appended) and part.stream == self._mine:
                    self.own = outcome.first_versions[index] + len(part.events) - 1
        self.out.write(json.dumps([self.number, entries, refused, again]) + "\n")

    @property
    def _mine(self) -> str:
        return f"own-{self.number}"

    def _own(self) -> list[AppendRequest]:
        return [AppendRequest([StreamAppend(self._mine, self._events(), self.own)])]

    def _shared(self) -> list[AppendRequest]:
        """Somebody else may be faster."""
        stream = self._any_shared()
        return [AppendRequest([StreamAppend(stream, self._events(), self.log.head(stream))])]

    def _wherever(self) -> list[AppendRequest]:
        return [AppendRequest([StreamAppend(self._any_shared(), self._events(), ANY)])]

    def _spanning(self) -> list[AppendRequest]:
        one, other = self.random.sample(range(SHARED), 2)
        return [AppendRequest([StreamAppend(f"shared-{one}", self._events(), ANY), StreamAppend(f"shared-{other}", self._events(), ANY)])]

    def _several(self) -> list[AppendRequest]:
        return [*self._own(), *self._wherever(), *self._shared()]

    def _any_shared(self) -> str:
        return f"shared-{self.random.randrange(SHARED)}"

    def _events(self) -> list[NewEvent]:
        return [NewEvent(new_id(), "thing.happened", 1, self.random.randbytes(self.random.choice([0, 10, 1_000]))) for _ in range(self.random.randint(1, 4))]


def main(url: str, folder: str, first: str, count: str, seed: str) -> int:
    """The exit code: how many of the writers failed."""
    log = open_log(url, create=False)
    faults: list[BaseException] = []

    def write(number: int) -> None:
        try:
            with (Path(folder) / f"writer-{number}").open("w", buffering=1) as out:
                Writer(log, number, int(seed), out).write(Path(folder) / "enough")
        except BaseException as fault:
            faults.append(fault)
            raise

    threads = [threading.Thread(target=write, args=(number,)) for number in range(int(first), int(first) + int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    return len(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
