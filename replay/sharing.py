"""Streams shared out among processes of their own, each with its own copy of the code; the answers in the order asked.

A child that dies (agent code may end a process) costs the stream it was at its verdict and nobody else anything.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, Final

import attrs
import msgspec

from .against import Folded
from .child import PROGRAM, Order
from .errors import CodeUnusable

_AHEAD: Final = 64
"""Streams asked about for each child before the first answer is taken."""

_LOOK: Final = 0.2
"""Seconds after which whoever waits for an answer looks whether it was interrupted."""


@attrs.frozen
class Died:
    """The child ended while it was at this stream."""

    stream: str
    code: int

    @property
    def reason(self) -> str:
        """In words."""
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"the process that ran its code ended with {how}; what it printed stands on stderr"


class UsageFault(CodeUnusable):
    """The app was named wrongly: a matter of the command line, not of the code."""


def shared_out(order: Order, streams: Iterable[str], children: int, ready: Child | None = None) -> Generator[tuple[str, Any], None, None]:
    """``(stream, found)`` for each stream, in their order: a tree as the child made it, ``None`` when it was passed over, or ``Died``.

    ``ready`` is a child with the same order that has begun already; it is ended with the others.
    Raises ``CodeUnusable`` when the children cannot load the app or open the log.
    """
    sharing = _Sharing(order, ready)
    with ThreadPoolExecutor(children, thread_name_prefix="replay") as pool:
        try:
            waiting: deque[tuple[str, Future[Any]]] = deque()
            for stream in streams:
                waiting.append((stream, pool.submit(sharing.ask, stream)))
                if len(waiting) > _AHEAD * children:
                    yield _taken(*waiting.popleft())
            while waiting:
                yield _taken(*waiting.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            sharing.close()


def _taken(stream: str, answer: Future[Any]) -> tuple[str, Any]:
    while not wait([answer], _LOOK).done:  # an interrupt that came just before a wait without an end would not be seen
        pass
    return stream, answer.result()


class _Sharing:
    """One child a thread, made when the thread is first given something."""

    def __init__(self, order: Order, ready: Child | None) -> None:
        self._order = order
        self._mine = threading.local()
        self._ready = [ready] if ready is not None else []
        self._children: list[Child] = [*self._ready]
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, stream: str) -> Any:
        child = getattr(self._mine, "child", None)
        if child is None:
            child = self._mine.child = self._begun()
        found = child.ask(stream)
        if isinstance(found, Died):
            self._mine.child = None
            child.close()
        return found

    def _begun(self) -> Child:
        with self._lock:
            if self._ready:
                return self._ready.pop()
        child = Child(self._order)
        with self._lock:
            self._children.append(child)
            if self._closed:
                child.close()
        return child

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for child in self._children:
                child.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A process that is begun here has ^C blocked from its first moment on: it is for the parent, who ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Child:
    """One process, and what it says. Raises ``CodeUnusable`` when it cannot load the app."""

    def __init__(self, order: Order) -> None:
        self.order = order
        begun: subprocess.Popen[bytes] | None = None
        try:
            with _without_interrupts():
                self._process = begun = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            answer = self._said(msgspec.to_builtins(order))
            if answer is None:
                code = self._process.wait()
                raise CodeUnusable(f"the process that loads {order.app} ended with exit code {code}; what it printed stands on stderr")
            self._check(answer)
        except BaseException:  # ^C as well: nothing is left running
            if begun is not None:
                self.close()
            raise
        self.beside: list[str] = answer["beside"]
        #: Names of the app's agents.
        self.agents: list[str] = answer["agents"]
        #: Whether the app declares projections.
        self.projections: bool = answer["projections"]

    def folded(self, stream: str, version: int) -> Folded:
        """The stream's aggregate at ``version``, of a child with the verb ``state``."""
        found = self.ask([stream, version])
        return Folded(reason=found.reason) if isinstance(found, Died) else msgspec.convert(found, Folded)

    def ask(self, asked: Any) -> Any:
        """What it found about a stream: a tree, ``None`` when it passed it over, or ``Died``."""
        stream = asked if isinstance(asked, str) else asked[0]
        answer = self._said(asked)
        if answer is None:
            return Died(stream, self._process.wait())
        self._check(answer)
        return answer.get("found")

    def _said(self, value: Any) -> dict[str, Any] | None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):  # it is gone, or was closed by whoever gave up
            return None
        answer: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return answer

    def _check(self, answer: dict[str, Any]) -> None:
        if "failed" in answer:
            self.close()
            raise (UsageFault if answer["usage"] else CodeUnusable)(answer["failed"])

    def close(self) -> None:
        """It has nothing to write: end it at once."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()
