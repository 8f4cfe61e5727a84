"""Where messages leave: results, questions to people, dead letters. Each is a part whose failures health shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from ...agents.leasing import in_thread
from ..watching import Watching
from .errors import BusUnavailable, MessageTooLarge
from .protocol import Message, Outgoing, Sink, headers_of

SOURCE: Final = "source"
STORE: Final = "store"
RESULTS: Final = "results"
APPROVALS: Final = "approvals"
DEAD_LETTERS: Final = "dead letters"
_DOING: Final = {RESULTS: "publishing a result", APPROVALS: "publishing a question", DEAD_LETTERS: "publishing a dead letter"}
_LEFT: Final = 1 << 16
"""Bytes, at most, that are kept of a dead letter which its sink does not take whole."""


class Outlet:
    """One sink, opened when it is first used. Belongs to an event loop; the sink is called in threads."""

    def __init__(self, part: str, open_sink: Callable[[], Sink], watching: Watching, on_error: Callable[[str, BaseException], None]) -> None:
        self.part = part
        self._open, self._watching, self._on_error = open_sink, watching, on_error
        self._sink: Sink | None = None
        self._lock = threading.Lock()
        #: Calls of the sink under way.
        self.under_way = 0

    async def publish(self, message: Outgoing) -> None:
        """Durable when it returns. Raises ``BusUnavailable``, which health has heard of, and ``MessageTooLarge``."""
        self.under_way += 1
        try:
            await in_thread(lambda: self._opened().publish([message]))
        except BusUnavailable as problem:
            self._on_error(_DOING[self.part], problem)
            self._watching.failed(self.part, problem)
            raise
        finally:
            self.under_way -= 1
        self._watching.beat(self.part)

    async def most_bytes(self) -> int:
        """The largest value that the sink takes. Raises ``BusUnavailable``."""
        return self._sink.most_bytes if self._sink is not None else (await in_thread(self._opened)).most_bytes

    def close(self) -> None:
        """Let go of the sink."""
        with self._lock:
            if self._sink is not None:
                self._sink.close()

    def _opened(self) -> Sink:
        with self._lock:
            if self._sink is None:
                self._sink = self._open()
            return self._sink


async def set_aside(outlet: Outlet, message: Message, kind: str, why: str, now: int) -> None:
    """Publish ``message`` as a dead letter: its key, its bytes and its headers as they came, and beside them why it is one.

    Crash argument: it is acknowledged behind this, so a crash in between makes two dead letters of it, never none. One that the sink
    does not take whole is cut short, and says so: nothing may keep its partition for ever.
    """
    told = headers_of(
        dead_letter_kind=kind, dead_letter_reason=why[:2_000], dead_letter_partition=message.partition, dead_letter_offset=message.offset, dead_letter_at=now
    )
    try:
        await outlet.publish(Outgoing(message.key, message.value, {**message.headers, **told}))
    except MessageTooLarge:
        left = min(_LEFT, await outlet.most_bytes() // 2)
        told |= headers_of(dead_letter_bytes=len(message.value))
        await outlet.publish(Outgoing(message.key, message.value[:left], told))
