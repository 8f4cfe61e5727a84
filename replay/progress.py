"""A line at the bottom of the terminal that says how far a long look back has come; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from ..eventlog.printing import cut, say

_BAR: Final = 24
_PAUSE: Final = 0.1


class Progress:
    """``advance`` once an item; ``say`` prints above the line. On a pipe both do only what has to be done."""

    def __init__(self, total: Callable[[], int]) -> None:
        """``total`` is asked only when somebody watches."""
        self._watched = sys.stderr.isatty()
        self._total = total() if self._watched else 0
        self._done = 0
        self._drawn_at = time.monotonic()
        self._drawn = False

    def advance(self, remark: str) -> None:
        """One more is done."""
        self._done += 1
        now = time.monotonic()
        if self._watched and now - self._drawn_at >= _PAUSE:
            self._drawn_at, self._drawn = now, True
            filled = _BAR * min(self._done, self._total) // max(self._total, 1)
            text = f"{'━' * filled}{'·' * (_BAR - filled)}  {self._done:,}/{self._total:,}  {remark}"
            sys.stderr.write(f"\r\x1b[2K{cut(text, 96)}")
            sys.stderr.flush()

    def say(self, lines: Iterable[str]) -> None:
        """Print the answer's lines where the bar was."""
        self.close()
        for line in lines:
            say(line)

    def close(self) -> None:
        """Take the bar away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False
