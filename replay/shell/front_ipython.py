"""The front end on IPython: its editing, history and magics; every other line is the shell's."""

from __future__ import annotations

import ast
from codeop import compile_command
from collections.abc import Callable
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion
from IPython.terminal.interactiveshell import TerminalInteractiveShell
from IPython.terminal.prompts import Prompts
from pygments.token import Token  # type: ignore[import-untyped]
from traitlets.config import Config

from ...eventlog.console import OK
from .answers import Answer
from .completing import complete
from .lines import Command, read_line
from .names import LIVE, bind
from .printing import Screen
from .remembering import Memory
from .session import Session

_DO: Final = "__eventlog_do__"
_HISTORY: Final = "ipython"
_NATIVE: Final = ("%", "!", "?")


def run(session: Session, screen: Screen, memory: Memory) -> int:
    """IPython's own loop, until ^D or ``quit``."""
    config = Config()
    config.TerminalInteractiveShell.banner1 = ""
    config.TerminalInteractiveShell.confirm_exit = False
    config.TerminalInteractiveShell.term_title = False
    config.TerminalInteractiveShell.separate_in = ""
    config.TerminalInteractiveShell.xmode = "Minimal"
    config.TerminalInteractiveShell.autosuggestions_provider = None
    config.IPCompleter.use_jedi = False
    history = memory.prepared(_HISTORY)
    config.HistoryAccessor.enabled = history is not None
    if history is not None:
        config.HistoryManager.hist_file = str(history)
    shell = TerminalInteractiveShell.instance(config=config, user_ns=session.namespace)
    session.namespace = shell.user_ns
    _connect(shell, session, screen)
    mainloop: Callable[[], None] = shell.mainloop
    try:
        mainloop()
    finally:
        TerminalInteractiveShell.clear_instance()
    return OK


def _connect(shell: Any, session: Session, screen: Screen) -> None:
    def do(text: str) -> None:
        try:
            done = session.do(text)
        except KeyboardInterrupt:
            done = Answer(("interrupted",))
        screen.show(done)
        if done.over:
            shell.ask_exit()

    shell.user_ns[_DO] = do
    shell.user_ns_hidden[_DO] = do
    shell.input_transformer_manager.cleanup_transforms.insert(0, lambda lines: _given_to_the_session(session, lines))
    shell.prompts = _prompts(session)(shell)
    shell.Completer.custom_matchers.append(_matcher(session))
    shell.events.register("pre_run_cell", lambda info: bind(session.namespace, frozenset(LIVE), session.live()) if _is_native(info.raw_cell) else None)


def _is_native(text: str) -> bool:
    stripped = text.strip()
    return stripped.startswith(_NATIVE) or stripped.endswith("?")


def _given_to_the_session(session: Session, lines: list[str]) -> list[str]:
    """The lines as a call of the session; as they are while Python wants more of them, and where they are IPython's own."""
    text = "".join(lines)
    if not session.python and text.strip():
        return lines if _is_given(text) else [f"{_DO}({text!r})\n"]
    if not text.strip() or text.startswith(_DO) or _is_native(text):
        return lines
    if not isinstance(read_line(text, session.commands), Command):
        try:
            if compile_command(text.strip() if "\n" not in text.strip() else text, "<shell>", "exec") is None:
                return lines
        except (SyntaxError, ValueError, OverflowError):
            pass  # the session says what is wrong with it
    return [f"{_DO}({text!r})\n"]


def _is_given(text: str) -> bool:
    """Whether it is nothing but a call that was made here."""
    try:
        return text.startswith(_DO) and isinstance(ast.literal_eval(text[len(_DO) :].strip()), str)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False


def _prompts(session: Session) -> type[Prompts]:
    class Cursor(Prompts):
        """Where the cursor stands, instead of a number."""

        def in_prompt_tokens(self) -> list[tuple[Any, str]]:
            place, arrow, _ = session.prompt.rpartition("›")
            return [(Token.Literal.String, place), (Token.Prompt, f"{arrow} ")]

        def continuation_prompt_tokens(self, width: int | None = None, **_: Any) -> list[tuple[Any, str]]:
            return [(Token.Prompt, "… ".rjust(width or 2))]

        def out_prompt_tokens(self) -> list[tuple[Any, str]]:
            return []

    return Cursor


def _matcher(session: Session) -> Any:
    def match(context: CompletionContext) -> Any:
        found = complete(session, context.text_until_cursor)
        token = context.token
        completions = [SimpleCompletion(_whole(each.text, each.replaces, token), type=each.says or None) for each in found]
        return {"completions": completions, "suppress": bool(completions), "ordered": True}

    match.matcher_api_version = 2  # type: ignore[attr-defined]
    match.matcher_identifier = "eventlog"  # type: ignore[attr-defined]
    return match


def _whole(text: str, replaces: int, token: str) -> str:
    """IPython replaces the token that it sees: what of it stays is put in front."""
    return token[: len(token) - replaces] + text if replaces <= len(token) else text[replaces - len(token) :]
