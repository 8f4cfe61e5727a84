"""^C while the command ``eventlog`` is still being loaded: it ends as it does later, by one line and 130, not by a traceback.

This module is the first of the room to be imported, and imports nothing that takes time. In any other program it does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any, Final

_NAME: Final = "eventlog"
_INTERRUPTED: Final = 130


def _end(number: int, frame: Any) -> None:
    os.write(2, b"eventlog: interrupted\n")
    os._exit(_INTERRUPTED)


def begin(program: str) -> None:
    """From now on ^C ends the process at once, if ``program`` is the command and nobody else has a say in it."""
    mine = os.path.basename(program) == _NAME and threading.current_thread() is threading.main_thread()
    if mine and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def over() -> None:
    """From now on it is a ``KeyboardInterrupt`` again, for whoever catches it is there."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


begin(sys.argv[0] if getattr(sys, "argv", None) else "")
