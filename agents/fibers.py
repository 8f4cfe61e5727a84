"""Many coroutines of one activation, run one at a time in an order that the log decides.

Rules of this file: nothing here knows tools, models or facts. A fiber is a coroutine; it yields a request for the
driver (passed on), a ``WaitFor`` (parked until its outcome), or a ``Fork`` (children to run beside each other). When no
fiber can go on, the waits that have an outcome are served in the order in which the outcomes were recorded, and only as
far as the turn being run, or re-run, had seen; so the same log gives the same interleaving, whatever the completion
order was while it happened (S-7.6).
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Protocol

import attrs

from .errors import AgentExited, Superseded, TurnOver
from .failures import failure_of
from .requests import REQUESTS, Request


class StepCancelled(BaseException):
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


@attrs.frozen
class Parked:
    """Every fiber waits for something that has no outcome yet."""

    waits: tuple[str, ...]


class Script(Protocol):
    """What the log says to the fibers."""

    def next_outcome(self, waits: Sequence[str]) -> str | BaseException | None:
        """The wait among ``waits`` whose outcome comes next; an exception for the main fiber; ``None`` when nothing is there."""
        ...

    def next_epoch(self, waits: Sequence[str]) -> bool:
        """Go on from where all fibers wait to what the next turn had seen; ``False`` when there is no later one."""
        ...

    def abandoned(self, waits: Sequence[str]) -> None:
        """Nobody waits for these any more: their fiber was cancelled."""
        ...


class _Fiber:
    __slots__ = ("begun", "cancelled", "coroutine", "ends", "first", "open", "parent", "place", "raising", "wait")

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
        self.begun = False
        #: It lost a race: how it ends is no result any more.
        self.cancelled = False
        #: What is thrown into it once its children are over.
        self.raising: BaseException | None = None


class Fibers:
    """A main coroutine and what it forks. ``foreign(coroutine, awaited)`` makes the error for an awaitable nobody here knows."""

    def __init__(self, main: Coroutine[Any, Any, Any], script: Script, foreign: Callable[[Any, object], BaseException]) -> None:
        self._root = _Fiber(main, None, 0)
        self._script = script
        self._foreign = foreign
        self._ready: deque[tuple[_Fiber, Any, BaseException | None]] = deque([(self._root, None, None)])
        self._parked: dict[_Fiber, None] = {}

    def run(self) -> Generator[Request, Any, Any]:
        """Run until the main coroutine returns, and give its value; or ``Parked`` when it waits for what has no outcome yet.

        Yields requests to the driver. Raises what the main coroutine raised.
        """
        ready, root = self._ready, self._root
        while True:
            while ready:
                fiber, value, error = ready.popleft()
                try:
                    if isinstance(error, StepCancelled) and not fiber.begun:
                        discard(fiber.coroutine)
                        raise error
                    fiber.begun = True
                    wanted = fiber.coroutine.send(value) if error is None else fiber.coroutine.throw(error)
                except StopIteration as stop:
                    if fiber is root:
                        return stop.value
                    self._ended(fiber, End(fiber.place, stop.value))
                except (Exception, StepCancelled) as raised:
                    if fiber is root:
                        raise
                    self._ended(fiber, End(fiber.place, None, raised))
                except (Superseded, TurnOver):
                    raise
                except BaseException as raised:  # it would end the worker, and with it every other key's turn
                    raise AgentExited(f"agent code raised {type(raised).__name__}: {failure_of(raised).message}") from raised
                else:
                    if isinstance(wanted, REQUESTS):
                        try:
                            answer = yield wanted
                        except Exception as failure:
                            ready.appendleft((fiber, None, failure))
                        else:
                            ready.appendleft((fiber, answer, None))
                    else:
                        self._take(fiber, wanted)
            if not self._serve():
                return Parked(tuple(fiber.wait for fiber in self._parked))

    def close(self) -> None:
        """Close every coroutine, innermost first. Agent code that will not be closed is left to the collector."""
        _close(self._root)

    def _take(self, fiber: _Fiber, wanted: object) -> None:
        if isinstance(wanted, WaitFor):
            fiber.wait = wanted.wait
            self._parked[fiber] = None
        elif isinstance(wanted, Fork):
            fiber.first, fiber.ends = wanted.first, []
            fiber.open = [_Fiber(child, fiber, place) for place, child in enumerate(wanted.children)]
            if not fiber.open:
                self._ready.append((fiber, [], None))
            self._ready.extend((child, None, None) for child in fiber.open)
        else:
            self._ready.appendleft((fiber, None, self._foreign(fiber.coroutine, wanted)))

    def _serve(self) -> bool:
        """Make the next fiber ready; ``False`` when there is none."""
        while True:
            waits = [fiber.wait for fiber in self._parked]
            found = self._script.next_outcome(waits)
            if isinstance(found, BaseException):
                self._interrupt(found)
                return True
            if found is not None:
                fiber = next(each for each in self._parked if each.wait == found)
                del self._parked[fiber]
                fiber.wait = ""
                self._ready.append((fiber, None, None))
                return True
            if not self._script.next_epoch(waits):
                return False

    def _interrupt(self, error: BaseException) -> None:
        """Throw ``error`` into the main fiber where it waits; what it had forked is cancelled, and cleans up, first."""
        root = self._root
        if root.raising is None:
            root.raising = error
        self._stop(root)

    def _ended(self, fiber: _Fiber, end: End) -> None:
        parent = fiber.parent
        assert parent is not None, "the main fiber has no parent, and its end ends the run"
        parent.open.remove(fiber)
        if not fiber.cancelled:
            parent.ends.append(end)
            if parent.first:
                for loser in list(parent.open):
                    self._cancel(loser)
        elif isinstance(end.error, Exception) and isinstance(parent.raising, StepCancelled | None):
            parent.raising = end.error  # a clean-up that fails is not passed over
        if parent.open:
            return
        if parent.raising is not None:
            self._throw(parent)
        else:
            self._ready.append((parent, parent.ends, None))

    def _cancel(self, fiber: _Fiber) -> None:
        """Throw ``StepCancelled`` into a fiber, once all that it forked is over in the same way.

        It may clean up, with steps of its own; whoever forked it goes on when that is done.
        """
        fiber.cancelled, fiber.raising = True, StepCancelled()
        self._stop(fiber)

    def _stop(self, fiber: _Fiber) -> None:
        if fiber.open:
            for child in list(fiber.open):
                self._cancel(child)
            return
        self._parked.pop(fiber, None)
        if fiber.wait:
            if all(other.wait != fiber.wait for other in self._parked):
                self._script.abandoned([fiber.wait])
            fiber.wait = ""
        for entry in [entry for entry in self._ready if entry[0] is fiber]:
            self._ready.remove(entry)
        self._throw(fiber)

    def _throw(self, fiber: _Fiber) -> None:
        error, fiber.raising = fiber.raising, None
        self._ready.append((fiber, None, error))


def discard(coroutine: Any) -> None:
    """Close a coroutine, and if it never began also those it was given, for nobody will await them."""
    frame = getattr(coroutine, "cr_frame", None)
    given = list(frame.f_locals.values()) if frame is not None and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED else []
    coroutine.close()
    for value in given:
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, Coroutine):
                discard(each)


def _close(fiber: _Fiber) -> None:
    if not fiber.open and getattr(fiber.coroutine, "cr_frame", fiber) is None:  # it is over
        return
    for child in fiber.open:
        _close(child)
    with contextlib.suppress(BaseException):  # the turn is over: whatever its clean-up raises changes nothing any more
        discard(fiber.coroutine)
