"""Settings of the interpreter for a process that does nothing but serve."""

from __future__ import annotations

import gc
import sys
from typing import Final

_YOUNG: Final = 50_000
_SWITCH: Final = 0.0005


def tune_for_serving() -> None:
    """Tell Python that this process serves from now on; ``eventlog run`` and ``eventlog worker`` do so once the app is loaded.

    Turns make many short-lived objects and few cycles, so the collector need not look as often, nor ever again at what is
    there already; and the thread that commits must get its turn in well under the 5 ms that Python lets a busy thread go
    on. Both hold for the whole process: a program that does other things beside its worker decides for itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 50)
    sys.setswitchinterval(_SWITCH)
