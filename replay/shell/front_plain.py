"""The plain front end: ``input`` with readline's editing where there is a terminal, and lines from a pipe where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Final

from ...eventlog.console import OK
from .answers import Answer
from .completing import complete
from .lines import Code, read_line
from .printing import Screen
from .remembering import Memory
from .session import Session

_DELIMITERS: Final = " \t\n"
_HISTORY: Final = "history"


def run(session: Session, screen: Screen, memory: Memory) -> int:
    """Read, do, print, until the end of input; how the last command that went wrong ended, when no terminal is there."""
    if not sys.stdin.isatty():
        return _piped(session, screen)
    readline = _readline(session, memory)
    try:
        while True:
            try:
                text = _read(session, lambda: input(_prompt(session, escaped=readline is not None)))
            except EOFError:
                screen.say("")
                return OK
            except KeyboardInterrupt:
                screen.say("")
                continue
            if _did(session, screen, text).over:
                return OK
    finally:
        if readline is not None:
            memory.keep(_HISTORY, [readline.get_history_item(place + 1) for place in range(readline.get_current_history_length())])


def _did(session: Session, screen: Screen, text: str) -> Answer:
    try:
        done = session.do(text)
    except KeyboardInterrupt:
        screen.say("interrupted")
        return Answer()
    screen.show(done)
    return done


def _read(session: Session, ask: Callable[[], str]) -> str:
    """A line, or the lines of a block that Python wants more of; an empty line ends it."""
    from codeop import compile_command

    text = ask()
    while isinstance(read_line(text, session.commands), Code):
        try:
            if compile_command(text, "<shell>", "exec") is not None:
                return text
        except (SyntaxError, ValueError, OverflowError):
            return text
        more = input("… ")
        if not more.strip():
            return text
        text = f"{text}\n{more}"
    return text


def _piped(session: Session, screen: Screen) -> int:
    """Each line with its prompt before its answer, so that what comes out reads as a session."""
    worst = OK
    for line in sys.stdin:
        screen.say(f"{session.prompt}{line.rstrip()}")
        done = session.do(line)
        screen.show(done)
        worst = max(worst, done.code)
        if done.over:
            break
    return worst


def _prompt(session: Session, *, escaped: bool) -> str:
    """The prompt in bold; readline is told which characters have no width."""
    place, arrow, _ = session.prompt.rpartition("›")
    bold, plain = ("\x01\x1b[1m\x02", "\x01\x1b[0m\x02") if escaped else ("\x1b[1m", "\x1b[0m")
    return f"{bold}{place}{plain}{arrow} "


def _readline(session: Session, memory: Memory) -> ModuleType | None:
    try:
        import readline
    except ImportError:  # a Python that was built without it
        return None
    readline.clear_history()
    for line in memory.lines(_HISTORY):
        readline.add_history(line)
    found: list[str] = []

    def completed(text: str, state: int) -> str | None:
        if state == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            found[:] = [each.text if len(text) <= each.replaces else text[: len(text) - each.replaces] + each.text for each in complete(session, line)]
        return found[state] if state < len(found) else None

    readline.set_completer_delims(_DELIMITERS)
    readline.set_completer(completed)
    readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
    return readline
