"""The memory store: a real store for one process, which forgets everything with it."""

from __future__ import annotations

import heapq
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...eventlog.clock import Micros
from .address import masked
from .errors import InvalidDedupUrl
from .kept import KeptStore
from .rules import Record
from .store import Busy, Done, Free

_URL: Final = re.compile(r"memory://[\w.-]*\Z")


class MemoryStore(KeptStore):
    """A ``DedupStore`` in this process's memory; opening the same URL twice gives two empty stores."""

    shared = False

    def __init__(self, url: str = "memory://") -> None:
        super().__init__(url)
        self.caveats = ("it forgets every claim and result with its process: an intent delivered again after a restart is carried out again",)
        self._lock = threading.Lock()
        self._records: dict[str, Record] = {}
        self._results: dict[str, bytes] = {}
        self._expiring: list[tuple[Micros, str]] = []

    def _look(self, intent_id: str, now: Micros) -> Done | Busy | Free:
        with self._lock:
            return self._seen(intent_id, self._records.get(intent_id), now)

    @contextmanager
    def _locked(self, *, durable: bool) -> Iterator[None]:
        with self._lock:
            yield

    def _find(self, intent_id: str) -> Record | None:
        return self._records.get(intent_id)

    def _outcome(self, intent_id: str) -> Done:
        status = self._records[intent_id].status
        assert status is not None
        return Done(status, self._results[intent_id])

    def _put(self, intent_id: str, record: Record, result: bytes | None = None) -> None:
        self._records[intent_id] = record
        if result is None:
            self._results.pop(intent_id, None)
        else:
            self._results[intent_id] = result
            heapq.heappush(self._expiring, (record.expires_at, intent_id))

    def _sweep(self, before: Micros, most: int) -> None:
        for _ in range(most):
            if not self._expiring or self._expiring[0][0] > before:
                return
            expired_at, intent_id = heapq.heappop(self._expiring)
            record = self._records.get(intent_id)
            if record is not None and record.status is not None and record.expires_at == expired_at:
                del self._records[intent_id], self._results[intent_id]

    def _ping(self) -> None:
        """What is in this process answers."""

    def _close(self) -> None:
        """Others may still look at the object; it only refuses."""


def open_memory(url: str, *, create: bool = True) -> MemoryStore:
    """A fresh, empty store. Raises ``InvalidDedupUrl`` for a URL that is not ``memory://`` or ``memory://name``."""
    if not _URL.match(url):
        raise InvalidDedupUrl(f"Invalid memory URL {masked(url)!r}: it is memory:// or memory://name, the name of letters, digits, '_', '.' and '-'.")
    return MemoryStore(url)
