"""An event loop that users' code shares, and may therefore end: it can cancel every task, or stop the loop itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from ..eventlog.console import CouldNot

ENDED: Final = (
    "Code that runs in this process, a tool perhaps, cancelled its tasks or stopped its event loop, so nothing could go on. What was under way is as "
    "after a crash: the log has what was recorded, and the next process goes on from there. Such code must cancel only what it began itself."
)
_STOPPED: Final = "Event loop stopped before Future completed."


class EndedFromInside(CouldNot):
    """Neither a signal nor whoever runs the program ended it."""

    def __init__(self) -> None:
        super().__init__(ENDED)


def run(main: Coroutine[Any, Any, None]) -> None:
    """``asyncio.run``, where signals are heeded by others. Raises ``EndedFromInside`` when its tasks were cancelled, or its loop stopped
    or left, as by a callback that exits: no ^C comes out of it as a KeyboardInterrupt.
    """
    try:
        asyncio.run(main)
    except (asyncio.CancelledError, SystemExit, KeyboardInterrupt):
        raise EndedFromInside from None
    except RuntimeError as problem:
        if str(problem) != _STOPPED:
            raise
        raise EndedFromInside from None
