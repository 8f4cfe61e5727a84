"""How far a rebuild has come, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ..printing import note
from .advancing import Progress

_FIRST_LINE: Final = 2.0
_LONGEST_SILENCE: Final = 60.0


@contextmanager
def shown(view: str, begin: int, end: int) -> Iterator[Callable[[Progress], None]]:
    """What takes in progress between the positions ``begin`` and ``end``, for the length of the work."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _lines(view, begin, end)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.fields[view]}", markup=False), BarColumn(20), TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.description}"))
    console = Console(stderr=True, highlight=False, markup=False)
    with Bars(*columns, TimeRemainingColumn(), console=console, transient=True, refresh_per_second=8) as bars:
        bar = bars.add_task("", total=max(end - begin, 1), view=view)
        yield lambda now: bars.update(bar, completed=now.position - begin, description=told(now))


def told(progress: Progress) -> str:
    """The counts in a few words."""
    return f"{progress.handled:,} events" + (f" · {progress.parked:,} parked" if progress.parked else "")


def _lines(view: str, begin: int, end: int) -> Callable[[Progress], None]:
    """A line after two seconds, then ever more rarely."""
    pause, following = _FIRST_LINE, time.monotonic() + _FIRST_LINE

    def update(now: Progress) -> None:
        nonlocal pause, following
        if time.monotonic() < following:
            return
        pause = min(pause * 2, _LONGEST_SILENCE)
        following = time.monotonic() + pause
        note(f"{view}  {100 * (now.position - begin) // max(end - begin, 1)}%  {told(now)}")

    return update
