"""The one lock of a memory log. Every facet goes through it, and it refuses entry once the log is closed."""

from __future__ import annotations

import threading

from ..errors import LogUnavailable


class Gate:
    """``with gate:`` holds the lock; raises ``LogUnavailable`` after ``close``."""

    def __init__(self, url: str) -> None:
        self.changed = threading.Condition(threading.RLock())
        self._url = url
        self._open = True

    def __enter__(self) -> None:
        self.changed.acquire()
        if not self._open:
            self.changed.release()
            raise LogUnavailable(f"The log {self._url} has been closed. Open a new one with open_log.")

    def __exit__(self, *_: object) -> None:
        self.changed.release()

    def wait(self, timeout: float) -> None:
        """Let the lock go until somebody appends, closes, or ``timeout`` seconds have passed."""
        self.changed.wait(timeout)
        if not self._open:
            raise LogUnavailable(f"The log {self._url} was closed while it was waited for.")

    def close(self) -> None:
        with self.changed:
            self._open = False
            self.changed.notify_all()
