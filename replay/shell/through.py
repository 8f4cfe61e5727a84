"""The commands of ``eventlog`` within the shell: the same functions, given the session's log, app, stream and version.

Only those that read are let through. ``fork`` writes, but never to the log that is looked at and never ``--live``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import click

from ...eventlog.cli import group
from ...eventlog.console import OK, CouldNot
from ...eventlog.names import category_of
from ...eventlog.opening import READ_BUNDLES
from ..aggregates import categories
from ..expressions import parse_expression
from ..sources import bundle_path
from .answers import Answer
from .lines import unquoted, words_of
from .session import Session

#: What is filled in when it is not given: ``stream``, ``at`` (--at), ``version`` (a second argument).
READING: Final[Mapping[str, tuple[str, ...]]] = {
    "show": ("stream",),
    "state": ("stream", "at"),
    "replay": ("stream",),
    "verify": ("stream",),
    "why": ("stream", "at"),
    "bisect": ("stream",),
    "raw": ("stream", "version"),
    "bundle": ("stream",),
    "fork": ("stream", "at"),
    "trace": (),
    "search": (),
    "preflight": (),
    "streams": (),
    "stats": (),
    "tail": (),
    "dead-letters": (),
    "intents": (),
    "approvals": (),
    "projections": (),
}
#: Of groups, the sub-commands that read.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "dead-letters": ("list", "show"),
    "intents": ("list", "show"),
    "approvals": ("list", "show"),
    "projections": ("list", "lag", "compare"),
}
#: Their first argument is one stream; further words do not name others.
_ONE_STREAM: Final = frozenset({"show", "state", "why", "bisect", "raw", "fork"})
#: They fold the stream, as the session does itself.
_FOLDS: Final = frozenset({"state", "why", "bisect"})
#: The rest of the line is one expression.
_WHOLE: Final = frozenset({"bisect"})
#: How the commands that take bundles, too, name their log.
SOURCE: Final = "URL|BUNDLE"
#: Options that name code to be run.
_OF_CODE: Final = ("--app", "--code", "--against", "--over")
#: Parameters that say which streams are meant.
_CHOOSING: Final = ("streams", "everything", "category", "since", "bundle")


def through(name: str) -> Callable[[Session, str], Answer]:
    """The command ``name`` as one of the shell."""

    def run(session: Session, rest: str) -> Answer:
        return _run(session, name, rest)

    return run


def _run(session: Session, name: str, rest: str) -> Answer:
    words = _words(session, name, rest)
    context = click.Context(group)
    command = group.get_command(context, name)
    if command is None:
        raise click.UsageError(f"This installation has no command {name!r}.")
    path = f"eventlog {name}"
    if isinstance(command, click.Group):
        command, words, path = _part_of(command, name, words, path)
    words = _filled(session, name, command, words)
    try:
        code = command.main(words, prog_name=path, standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.Abort:
        raise CouldNot(f"{name} was interrupted.") from None
    return Answer((), code if isinstance(code, int) else OK)


def _words(session: Session, name: str, rest: str) -> list[str]:
    """The words behind a command; an expression is one of them, quoted or not, and options come behind it."""
    if name not in _WHOLE or rest.startswith("-") or not rest:
        return words_of(rest)
    text, dashes, options = rest.partition(" --")
    text = unquoted(text.strip())
    parse_expression(text)
    return [text, *words_of(dashes.strip() + options)]


def _part_of(command: click.Group, name: str, words: list[str], path: str) -> tuple[click.Command, list[str], str]:
    allowed = _PARTS.get(name, ())
    part = words[0] if words and not words[0].startswith("-") else allowed[0]
    if part not in allowed:
        raise click.UsageError(f"The shell only reads: of {name} it has {', '.join(allowed)}. For the others: eventlog {name} {part}")
    found = command.get_command(click.Context(command), part)
    if found is None:
        raise click.UsageError(f"This installation has no command '{name} {part}'.")
    return found, words[1:] if words and words[0] == part else words, f"{path} {part}"


def _filled(session: Session, name: str, command: click.Command, words: list[str]) -> list[str]:
    options = {parameter.name: parameter for parameter in command.params}
    wanted = READING[name]
    if "--help" in words or "-h" in words:
        return words
    if "stream" in wanted and session.stream:
        words = _with_stream(session, name, command, words)
    if "at" in wanted and session.stream and not any(word == "--at" or word.startswith("--at=") for word in words):
        words = [*words, "--at", str(session.at)]
    if "version" in wanted and session.stream and not [word for word in words[1:] if not word.startswith("-")]:
        words = [words[0], str(session.at), *words[1:]]
    _check_code(session, words)
    if name == "fork":
        _check_fork(session, words)
    if "url" in options and bundle_path(session.url) is not None and options["url"].metavar != SOURCE:
        raise click.UsageError(f"{name} reads logs only, and {session.url} is a bundle. What reads bundles: {READ_BUNDLES}.")
    if "url" in options and not any(word == "--log" or word.startswith("--log=") for word in words):
        words = [*words, "--log", session.url]
    spec = _spec(session, name, words)
    if "app" in options and spec and not any(word == "--app" or word.startswith("--app=") for word in words):
        words = [*words, "--app", spec]
    return words


def _spec(session: Session, name: str, words: list[str]) -> str:
    """The app that the command is given: what was loaded, as far as it goes, else the session's own."""
    loaded = session.loaded
    if loaded is None or loaded.app is None:
        return session.app_spec
    if name not in _FOLDS or category_of(words[0]) not in categories(loaded.app):
        return loaded.spec or session.app_spec
    running = next((each for each in ("--minimize", "--over") if each in words), None)
    if running is not None and not loaded.runs:
        raise click.UsageError(
            f"{running} runs the agent's code, and {loaded.path.name}:{loaded.name}, which folds here, has none. "
            f"For the answer of {session.app_spec or 'an app'}: unload"
        )
    return loaded.folds


def _with_stream(session: Session, name: str, command: click.Command, words: list[str]) -> list[str]:
    """The open stream in front, unless streams are named or everything is asked for."""
    if name in _ONE_STREAM:
        named = bool(words) and words[0].startswith(_beginning(session))
        return words if named else [session.stream, *words]
    if name == "verify" and words[:1] == ["all"]:
        return words[1:]
    with command.make_context(name, list(words), resilient_parsing=True) as context:
        chosen = [context.params.get(each) for each in _CHOOSING]
    return words if any(chosen) else [session.stream, *words]


def _beginning(session: Session) -> str:
    """What the name of a stream of the same category begins with: no path and no option does."""
    return f"{session.stream.partition('-')[0]}-"


def _check_code(session: Session, words: list[str]) -> None:
    """Where no Python is taken, no other code is named either."""
    named = next((word for word in words if word.partition("=")[0] in _OF_CODE), None)
    if named is not None and not session.python:
        raise click.UsageError(f"No other code is run here (--no-python), so {named.partition('=')[0]} cannot be given.")


def _check_fork(session: Session, words: list[str]) -> None:
    targets = [word.partition("=")[2] for word in words if word.startswith("--to=")]
    targets += [after for word, after in pairwise(words) if word == "--to"]
    if session.url in targets or any(word.startswith("--live") for word in words):
        line: list[Any] = ["eventlog", "fork", *words]
        raise click.UsageError(f"The shell writes neither to the log it reads nor anything live. Outside of it: {' '.join(line)}")
