"""The time between the first line of a command and the moment at which it serves: loading tools, opening a log."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_before_it_serves(code: int) -> Iterator[None]:
    """SIGTERM ends the process with ``code`` at once: nothing is under way yet. From when there is something, who serves heeds it.

    ^C ends every command at any time.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: os._exit(code))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
