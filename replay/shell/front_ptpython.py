"""The front end on ptpython: completion while typing, colours, several lines at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.validation import ValidationError, Validator
from ptpython.prompt_style import PromptStyle
from ptpython.python_input import PythonInput

from ...eventlog.console import OK
from .answers import Answer
from .completing import complete
from .lines import Command, read_line
from .printing import Screen
from .remembering import Memory
from .session import Session

_STYLE: Final = "eventlog"
_HISTORY: Final = "ptpython"


def run(session: Session, screen: Screen, memory: Memory) -> int:
    """Read, do, print, until ^D or ``quit``."""
    entry = _input(session, memory)
    while True:
        try:
            text = entry.read()
        except EOFError:
            return OK
        try:
            done = session.do(text)
        except KeyboardInterrupt:
            done = Answer(("interrupted",))
        screen.show(done)
        if done.over:
            return OK


def _input(session: Session, memory: Memory) -> PythonInput:
    history = memory.prepared(_HISTORY)
    entry = PythonInput(
        get_globals=lambda: session.namespace,
        history_filename=str(history) if history is not None else None,
        _completer=_Completer(session),
        _validator=_Validator(session),
    )
    entry.all_prompt_styles[_STYLE] = _Prompt(session)
    entry.prompt_style = _STYLE
    entry.confirm_exit = False
    entry.show_status_bar = False
    entry.show_signature = False
    entry.enable_history_search = True
    entry.enable_open_in_editor = entry.enable_system_bindings = session.python  # an editor and a Unix shell run anything
    entry.insert_blank_line_after_output = False
    entry.highlight_matching_parenthesis = True
    return entry


class _Prompt(PromptStyle):
    def __init__(self, session: Session) -> None:
        self._session = session

    def in_prompt(self) -> Any:
        place, arrow, _ = self._session.prompt.rpartition("›")
        return [("bold", place), ("ansicyan", f"{arrow} ")]

    def in2_prompt(self, width: int) -> Any:
        return [("ansibrightblack", "… ".rjust(width))]

    def out_prompt(self) -> Any:
        return []


class _Completer(Completer):
    def __init__(self, session: Session) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        return self._found(document)

    def _found(self, document: Document) -> Iterator[Completion]:
        for each in complete(self._session, document.text_before_cursor):
            yield Completion(each.text, start_position=-each.replaces, display_meta=each.says)


class _Validator(Validator):
    """Refuses only what has several lines and is no Python: one line is answered, and told what is wrong with it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def validate(self, document: Document) -> None:
        text = document.text
        if "\n" not in text.strip() or isinstance(read_line(text, self._session.commands), Command):
            return
        try:
            compile(text, "<shell>", "exec", dont_inherit=True)
        except SyntaxError as problem:
            index = document.translate_row_col_to_index((problem.lineno or 1) - 1, (problem.offset or 1) - 1)
            raise ValidationError(index, f"{problem.msg}") from None
        except ValueError as problem:
            raise ValidationError(0, str(problem)) from None
