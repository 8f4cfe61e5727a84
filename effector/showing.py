"""What a run shows while it runs, on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol, Self

from ..eventlog.printing import note
from .inputs import InputFile
from .process import Progress

_FIRST_LINE: Final = 2.0
_LONGEST_SILENCE: Final = 60.0


class Shown(Protocol):
    """Takes in progress ten times a second, and lines that must not be drawn over."""

    def update(self, progress: Progress) -> None:
        """How far it is now."""
        ...

    def say(self, text: str) -> None:
        """A line above the bar."""
        ...


@contextmanager
def shown(file: InputFile | None, *, until_idle: bool) -> Iterator[Shown]:
    """A view for the length of a run."""
    if not sys.stderr.isatty():
        yield Lines(file)
        return
    bar = Bar(file)
    with bar:
        yield bar


def told(progress: Progress, file: InputFile | None) -> str:
    """Progress in one line of at most 90 columns."""
    inputs = f"{progress.accepted:,} new" + (f" + {progress.duplicates:,} known inputs" if progress.duplicates else " inputs") if file is not None else ""
    parts = [inputs, f"{progress.turns:,} turns", f"{progress.settled:,} settled", f"{progress.open_intents:,} open", f"{progress.active:,} in flight"]
    return " · ".join(part for part in parts if part)


class Lines:
    """For a log file: a line after two seconds, then ever more rarely, and only when something has changed."""

    def __init__(self, file: InputFile | None) -> None:
        self._file = file
        self._last = ""
        self._pause = _FIRST_LINE
        self._next = time.monotonic() + _FIRST_LINE

    def update(self, progress: Progress) -> None:
        if time.monotonic() < self._next:
            return
        self._pause = min(self._pause * 2, _LONGEST_SILENCE)
        self._next = time.monotonic() + self._pause
        text = told(progress, self._file)
        if text != self._last:
            self._last = text
            note(text)

    def say(self, text: str) -> None:
        note(text)


class Bar:
    """For a person: how much of the file is read, and the counts behind it."""

    def __init__(self, file: InputFile | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as Bars

        self._file = file
        self._size = file.size if file is not None else None
        front = [BarColumn(20), TextColumn("{task.percentage:>3.0f}%")] if self._size else [SpinnerColumn("line")]
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._bars = Bars(*front, TextColumn("{task.description}", markup=False), console=self._console, transient=True, refresh_per_second=8)
        self._bar = self._bars.add_task("", total=self._size)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def update(self, progress: Progress) -> None:
        read = self._file.read if self._file is not None and self._size else None
        self._bars.update(self._bar, description=told(progress, self._file), completed=read)

    def say(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)
