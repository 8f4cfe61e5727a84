"""Many coroutines of one activation, run one at a time in an order that the log decides.

Rules of this file: nothing here knows tools, models or facts. A fiber is a coroutine; it yields a request for the
driver (passed on), a ``WaitFor`` (parked until its outcome), or a ``Fork`` (children to run beside each other). When no
fiber can go on, the waits that have an outcome are served in the order in which the outcomes were recorded, and only as
far as the turn being run, or re-run, had seen; so the same log gives the same interleaving, whatever the completion
order was while it happened (S-7.6).
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Protocol

import attrs

from .requests import REQUESTS, Request


class StepCancelled(BaseException):  # noqa: N818 - control flow, like asyncio.CancelledError
    """Thrown into a fiber that lost a race, so that its ``finally`` blocks run; not an ``Exception`` on purpose."""


@attrs.frozen
class WaitFor:
    """Park the fiber until ``wait`` has an outcome."""

    wait: str


@attrs.frozen(eq=False)
class Fork:
    """Run ``children`` beside each other. ``all``: resume with all their ends; ``first``: with the first, and cancel the others."""

    children: Sequence[Coroutine[Any, Any, Any]]
    first: bool


@attrs.frozen
class End:
    """How a child ended: a value, or what it raised."""

    place: int
    value: Any = None
    error: BaseException | None = None


@types.coroutine
def wait_for(wait: str) -> Generator[Any, Any, None]:
    """Wait for an outcome."""
    yield WaitFor(wait)


@types.coroutine
def fork(children: Sequence[Coroutine[Any, Any, Any]], first: bool) -> Generator[Any, Any, list[End]]:
    """Run children; their ends in the order in which they came."""
    ends: list[End] = yield Fork(children, first)
    return ends


class Blocked(Exception):  # noqa: N818 - a result
    """Every fiber waits for something that has no outcome yet."""


class Script(Protocol):
    """What the log says to the fibers."""

    def next_outcome(self, waits: Sequence[str]) -> str | BaseException | None:
        """The wait among ``waits`` whose outcome comes next; an exception for the main fiber; ``None`` when nothing is there."""
        ...

    def next_epoch(self) -> bool:
        """Go on to what the next turn had seen; ``False`` when there is no later one."""
        ...

    def abandoned(self, waits: Sequence[str]) -> None:
        """Nobody waits for these any more: their fiber was cancelled."""
        ...


class _Fiber:
    __slots__ = ("coroutine", "ends", "first", "open", "parent", "place", "wait")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], parent: _Fiber | None, place: int) -> None:
        self.coroutine = coroutine
        self.parent = parent
        self.place = place
        #: What it waits for, or "".
        self.wait = ""
        #: Children under way, and the ends of those that are over.
        self.open: list[_Fiber] = []
        self.ends: list[End] = []
        self.first = False


def run_fibers(main: Coroutine[Any, Any, Any], script: Script, foreign: Callable[[Any, object], BaseException]) -> Generator[Request, Any, Any]:
    """Run ``main`` and what it forks until it returns; raises ``Blocked`` when it waits for what has no outcome yet.

    Yields requests to the driver. ``foreign(coroutine, awaited)`` makes the error for an awaitable nobody here knows.
    """
    root = _Fiber(main, None, 0)
    ready: deque[tuple[_Fiber, Any, BaseException | None]] = deque([(root, None, None)])
    parked: dict[_Fiber, None] = {}
    try:
        while True:
            while ready:
                fiber, value, error = ready.popleft()
                try:
                    wanted = fiber.coroutine.send(value) if error is None else fiber.coroutine.throw(error)
                except StopIteration as stop:
                    if fiber is root:
                        return stop.value
                    _ended(fiber, End(fiber.place, stop.value), ready, parked, script)
                except (Exception, StepCancelled) as raised:
                    if fiber is root:
                        raise
                    _ended(fiber, End(fiber.place, None, raised), ready, parked, script)
                else:
                    if isinstance(wanted, REQUESTS):
                        try:
                            answer = yield wanted
                        except Exception as failure:
                            ready.appendleft((fiber, None, failure))
                        else:
                            ready.appendleft((fiber, answer, None))
                    elif isinstance(wanted, WaitFor):
                        fiber.wait = wanted.wait
                        parked[fiber] = None
                    elif isinstance(wanted, Fork):
                        _fork(fiber, wanted, ready)
                    else:
                        ready.appendleft((fiber, None, foreign(fiber.coroutine, wanted)))
            _serve(root, ready, parked, script)
    finally:
        for fiber in [*parked, *(fiber for fiber, _, _ in ready)]:
            fiber.coroutine.close()
        main.close()


def _serve(root: _Fiber, ready: deque[Any], parked: dict[_Fiber, None], script: Script) -> None:
    """Make the next fiber ready; raises ``Blocked`` when there is none."""
    while True:
        found = script.next_outcome([fiber.wait for fiber in parked])
        if isinstance(found, BaseException):
            _interrupt(root, found, ready, parked, script)
            return
        if found is not None:
            fiber = next(each for each in parked if each.wait == found)
            del parked[fiber]
            fiber.wait = ""
            ready.append((fiber, None, None))
            return
        if not script.next_epoch():
            raise Blocked


def _interrupt(root: _Fiber, error: BaseException, ready: deque[Any], parked: dict[_Fiber, None], script: Script) -> None:
    """Throw ``error`` into the main fiber where it waits; what it had forked is cancelled."""
    _cancel(root.open, parked, script)
    root.open, root.ends = [], []
    parked.pop(root, None)
    if root.wait:
        script.abandoned([root.wait])
        root.wait = ""
    ready.append((root, None, error))


def _fork(fiber: _Fiber, wanted: Fork, ready: deque[Any]) -> None:
    fiber.first = wanted.first
    fiber.ends = []
    fiber.open = [_Fiber(child, fiber, place) for place, child in enumerate(wanted.children)]
    if not fiber.open:
        ready.append((fiber, [], None))
    ready.extend((child, None, None) for child in fiber.open)


def _ended(fiber: _Fiber, end: End, ready: deque[Any], parked: dict[_Fiber, None], script: Script) -> None:
    parent = fiber.parent
    if parent is None or fiber not in parent.open:  # cancelled meanwhile
        return
    parent.open.remove(fiber)
    parent.ends.append(end)
    if parent.first and parent.open:
        losers, parent.open = parent.open, []
        remaining = [entry for entry in ready if entry[0] not in losers]
        ready.clear()
        ready.extend(remaining)
        _cancel(losers, parked, script)
    if not parent.open:
        ready.append((parent, parent.ends, None))


def _cancel(fibers: Sequence[_Fiber], parked: dict[_Fiber, None], script: Script) -> None:
    """Close fibers and all they forked, innermost first; a cancelled fiber may clean up, but not wait."""
    for fiber in fibers:
        _cancel(fiber.open, parked, script)
        fiber.open = []
        parked.pop(fiber, None)
        try:
            fiber.coroutine.throw(StepCancelled())
        except (StepCancelled, StopIteration):
            pass
        else:
            fiber.coroutine.close()
        if fiber.wait:
            script.abandoned([fiber.wait])
            fiber.wait = ""
