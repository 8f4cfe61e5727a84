"""How the kit meets a store, and the few values its checks are made of."""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import attrs

from ..clock import Clock, Micros, system_clock
from ..errors import LogError, RetryableError
from ..events import NewEvent, StoredEvent
from ..log import Appended, AppendRequest, EventLog, Outcome, StreamAppend, Wake
from ..versions import ANY, ExpectedVersion

T = TypeVar("T")
OpenStore = Callable[[Path, Clock], EventLog]

NOON: Final = 1_700_000_000_000_000
"""Where the kit's clocks begin."""
PATIENCE: Final = 60.0
"""Seconds after which a thread that should have ended fails its check."""


@attrs.frozen
class StoreMaker:
    """A store as the kit sees it: how to make a log in an empty folder, and what the store can do beyond that."""

    name: str
    #: A fresh, empty log with its files (if any) in the folder.
    make: OpenStore
    #: A second object on the log that ``make`` made in the same folder; None when a log lives in its object.
    reopen: OpenStore | None = None
    #: Whether other processes can open the log's ``url``.
    shared: bool = False
    #: Whether history stays outside this process's memory, so that long reads can be measured.
    outside_memory: bool = False


class Ticking:
    """A clock that moves only when told to."""

    def __init__(self, now: Micros = NOON) -> None:
        self.now = now

    def __call__(self) -> Micros:
        return self.now

    def advance(self, micros: Micros) -> Micros:
        self.now += micros
        return self.now


@contextmanager
def fresh(maker: StoreMaker, clock: Clock = system_clock) -> Iterator[EventLog]:
    """One new log, closed and removed afterwards."""
    with several(maker, 1, clock) as logs:
        yield logs[0]


@contextmanager
def several(maker: StoreMaker, count: int, clock: Clock = system_clock) -> Iterator[Sequence[EventLog]]:
    """``count`` objects on one new log: as many as can be opened, or the same one over and over."""
    with tempfile.TemporaryDirectory(prefix="intentlog-") as folder, ExitStack() as stack:
        first = maker.make(Path(folder), clock)
        stack.callback(first.close)
        logs = [first]
        for _ in range(count - 1):
            if maker.reopen is None:
                logs.append(first)
            else:
                logs.append(maker.reopen(Path(folder), clock))
                stack.callback(logs[-1].close)
        yield logs


_counter = itertools.count(1)


def an_id() -> bytes:
    """A new event id; ids grow."""
    return next(_counter).to_bytes(16, "big")


def event(data: bytes = b"{}", type: str = "thing.happened", *, id: bytes | None = None, schema: int = 1) -> NewEvent:
    """An event that is new unless ``id`` says otherwise."""
    return NewEvent(an_id() if id is None else id, type, schema, data)


def events(count: int) -> list[NewEvent]:
    return [event(str(number).encode()) for number in range(count)]


def request(stream: str, *new: NewEvent, expected: ExpectedVersion = ANY, wakes: Sequence[Wake] = ()) -> AppendRequest:
    """An append request with one part."""
    return AppendRequest([StreamAppend(stream, new, expected, wakes)])


def one(log: EventLog, single: AppendRequest) -> Outcome:
    """The outcome of a batch of one."""
    (outcome,) = log.append_batch([single])
    return outcome


def places(outcome: Outcome) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """First versions and positions of a success, told apart from no kind of success."""
    assert not isinstance(outcome, LogError), f"expected a success, got {outcome!r}"
    return tuple(outcome.first_versions), tuple(tuple(positions) for positions in outcome.positions)


def content(stored: Iterator[StoredEvent] | Sequence[StoredEvent]) -> list[tuple[str, int, bytes]]:
    return [(found.stream, found.version, found.data) for found in stored]


def everything(log: EventLog) -> list[StoredEvent]:
    return list(log.read_all())


def appended(outcome: Outcome) -> Appended:
    assert isinstance(outcome, Appended), f"expected Appended, got {outcome!r}"
    return outcome


def expect(*errors: type[BaseException]) -> Refusal:
    """``with expect(WrongExpectedVersion) as refusal: …``, then ``refusal.error``."""
    return Refusal(errors)


class Refusal:
    """Catches the error that a block must raise."""

    error: Any = None

    def __init__(self, errors: tuple[type[BaseException], ...]) -> None:
        self._errors = errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        assert error is not None, f"expected {' or '.join(found.__name__ for found in self._errors)}, and nothing was raised"
        self.error = error
        return isinstance(error, self._errors)


def patiently(call: Callable[[], T]) -> T:
    """What ``call`` gives, tried again while the store says it is busy."""
    for _ in range(1_000):
        try:
            return call()
        except RetryableError as error:
            busy = error
    raise busy


def together(*bodies: Callable[[], T]) -> list[T]:
    """Run every body in its own thread, started at one moment; their results in order. The first error is raised here."""
    barrier = threading.Barrier(len(bodies))
    results: dict[int, T] = {}
    faults: list[BaseException] = []

    def run(index: int, body: Callable[[], T]) -> None:
        try:
            barrier.wait(PATIENCE)
            results[index] = body()
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(index, body), daemon=True) for index, body in enumerate(bodies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if faults:
        raise faults[0]
    assert len(results) == len(bodies), f"{len(bodies) - len(results)} of {len(bodies)} threads did not end within {PATIENCE:.0f} s"
    return [results[index] for index in range(len(bodies))]
