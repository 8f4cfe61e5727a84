"""Where the lines of a log go: written past all buffers, and lost when nobody takes them.

A disk that is full, or whoever read them and died, must cost no outcome and hold up no end: a line is told in between an attempt and
its call, between a call and its record, and by what stops the process. So writing never raises. How many were lost is told
with the first line that is taken again.
"""

from __future__ import annotations

import io
import json
import os
import threading
from typing import Final, TextIO

_LOST: Final = "lines lost"


class Lines:
    """A file to structlog. From any thread."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._lock = out, threading.Lock()
        self._lost, self._torn = 0, False

    def write(self, line: str) -> int:
        """One line, with its end."""
        with self._lock:
            try:
                self._put(self._before() + line)
                self._lost = 0
            except (OSError, ValueError):  # ValueError: somebody closed it
                self._lost += 1
        return len(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def _before(self) -> str:
        """What ends a line that was torn, and says how many are missing."""
        end = "\n" if self._torn else ""
        if not self._lost:
            return end
        if self._out.isatty():
            return f'{end}level=warning event="{_LOST}" count={self._lost}\n'
        return end + json.dumps({"count": self._lost, "event": _LOST, "level": "warning"}) + "\n"

    def _put(self, text: str) -> None:
        try:
            number = self._out.fileno()
        except (io.UnsupportedOperation, AttributeError):  # in memory
            self._out.write(text)
            self._out.flush()
            return
        raw, done = text.encode("utf-8", "backslashreplace"), 0
        try:
            while done < len(raw):
                done += os.write(number, raw[done:])
        finally:
            self._torn = done < len(raw) and (self._torn or done > 0)
