"""Answers on a screen: the one place in which a front end writes."""

from __future__ import annotations

import contextlib
import os
import sys
from shutil import get_terminal_size
from typing import Any, Final

from rich.console import Console
from rich.text import Text
from rich.theme import Theme

from ...eventlog.printing import printing
from .answers import Answer

#: The terminal's own sixteen colours, so that it reads on light and dark alike.
_THEME: Final = Theme(
    {
        "repr.number": "blue",
        "repr.str": "green",
        "repr.bool_true": "magenta",
        "repr.bool_false": "magenta",
        "repr.none": "dim",
        "repr.attrib_name": "cyan",
        "repr.attrib_value": "none",
        "repr.attrib_equal": "dim",
        "repr.call": "bold",
        "repr.tag_name": "bold",
        "repr.ellipsis": "dim",
        "repr.brace": "none",
        "repr.uuid": "yellow",
        "repr.path": "none",
        "repr.filename": "none",
        "repr.url": "none",
    }
)
_PIPE: Final = 100
_NARROWEST: Final = 40


class Screen:
    """Prints answers to stdout, as wide as the terminal is at that moment."""

    def __init__(self) -> None:
        self._terminal = sys.stdout is not None and sys.stdout.isatty()
        given = os.environ.get("COLUMNS", "")
        self._pipe = max(int(given), _NARROWEST) if given.isdecimal() and int(given) else _PIPE

    def width(self) -> int:
        """Columns; of a pipe 100, for there an answer is read by people too."""
        if not self._terminal:
            return self._pipe
        return max(get_terminal_size((_PIPE, 24)).columns, _NARROWEST)

    def show(self, answer: Answer) -> None:
        """Print an answer's parts; ^C ends the printing, and no more."""
        with contextlib.suppress(KeyboardInterrupt), printing():
            self._show(answer)

    def _show(self, answer: Answer) -> None:
        if not answer.parts:
            return
        console = self._console()
        for part in answer.parts:
            shown = Text(part) if isinstance(part, str) else part
            if isinstance(shown, Text):  # rich joins texts that are printed, and their own settings are lost
                console.print(shown, no_wrap=shown.no_wrap, overflow=shown.overflow)
            else:
                console.print(shown)
        sys.stdout.flush()

    def _console(self) -> Console:
        plainly = bool(os.environ.get("NO_COLOR"))
        return Console(
            file=sys.stdout,
            width=self.width(),
            force_terminal=self._terminal,
            color_system="standard" if self._terminal and not plainly else None,
            no_color=plainly,
            theme=_THEME,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def say(self, text: Any) -> None:
        """One line or renderable."""
        self.show(Answer((text,)))
