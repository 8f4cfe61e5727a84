"""How a command that only reads ends: with its answer, whatever users' code has left running.

An app's module may have started threads that never end (a reporter, a server of metrics), and Python waits for them. Whoever
asked has the answer by then, and a thread that nobody will hear of is no reason to keep a pipeline waiting.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress

_before: list[frozenset[threading.Thread]] = []


def from_here_on() -> None:
    """Users' code is loaded now: threads that begin from here on are not waited for when the process ends."""
    _before[:] = [frozenset(threading.enumerate())]


def at_once(code: int) -> None:
    """End the process where threads of users' code would keep it; otherwise return."""
    if not _before or not any(not each.daemon and each not in _before[0] for each in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
