"""How a line may go on: commands, streams, event types, paths into the state, files, Python's attributes. Pure but for the log."""

from __future__ import annotations

import glob
import keyword
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs
import click

from ...agents.errors import AgentError
from ...eventlog.errors import LogError
from ..paths import paths_of
from .names import LIVE
from .session import Session
from .table import ENTRIES

_COMMAND: Final = re.compile(r"\s*(?P<word>[a-z][a-z-]*)\s+(?P<rest>.*)\Z", re.DOTALL)
_TOKEN: Final = re.compile(r"[\w.\[\]'\"…-]*\Z")
_NAME: Final = re.compile(r"(?P<before>(?:[A-Za-z_]\w*(?:\[[^\[\]]*\])?\.)*)(?P<last>[A-Za-z_]\w*)?\Z")
_ROOTS: Final = {"st": "state", "state": "state", "run": "run"}
_MOST: Final = 200
_WORDS: Final = {"goto": ("start", "end", "now"), "log": ("all",), "step": ("back",)}


@attrs.frozen
class Completion:
    """One way to go on."""

    text: str
    #: How many characters before the cursor it replaces.
    replaces: int
    #: What it is.
    says: str = ""


def complete(session: Session, text: str) -> list[Completion]:
    """How ``text``, which ends at the cursor, may go on; at most 200 ways. Never raises: a completion spoils no line."""
    try:
        found: list[Completion] = []
        for each in _complete(session, text):
            if len(found) == _MOST:
                break
            found.append(each)
        return found
    except (LogError, AgentError, click.ClickException, OSError):
        return []


def _complete(session: Session, text: str) -> Iterator[Completion]:
    typed = _COMMAND.match(text)
    if typed is not None and typed["word"] in ENTRIES:
        yield from _behind(session, typed["word"], typed["rest"])
        return
    if re.fullmatch(r"\s*[a-z-]*", text):
        begin = text.strip()
        yield from (Completion(word, len(begin), each.says) for word, each in ENTRIES.items() if word.startswith(begin))
    if session.python:
        yield from _python(session, text)


def _behind(session: Session, word: str, rest: str) -> Iterator[Completion]:
    kind = ENTRIES[word].rest
    if kind == "types" and rest.startswith("until "):
        kind = "expressions"
    match kind:
        case "streams":
            yield from _beginning(session.streams(rest), rest, "stream")
        case "types":
            yield from _beginning(_types(session), rest, "event type")
            if word == "back":
                yield from _beginning(("until",), rest)
        case "paths":
            token = _token(rest)
            yield from _beginning(paths_of(session.walk.tree, token), token)
        case "expressions":
            yield from _expression(session, _token(rest))
        case "files":
            yield from _beginning(sorted(glob.glob(f"{glob.escape(rest)}*")), rest)
        case "words":
            yield from _beginning(_WORDS.get(word, ()), rest)
        case "commands":
            yield from _beginning(ENTRIES, rest)


def _beginning(names: Iterable[str], begin: str, says: str = "") -> Iterator[Completion]:
    return (Completion(name, len(begin), says) for name in names if name.startswith(begin))


def _token(rest: str) -> str:
    found = _TOKEN.search(rest)
    return found.group() if found is not None else ""


def _types(session: Session) -> list[str]:
    """Event types that the code knows, and their classes' names."""
    if not session.stream:
        return []
    app = session.folding(session.stream.partition("-")[0])
    entries = list(app.registry)
    return sorted({entry.name for entry in entries}) + sorted({entry.cls.__name__ for entry in entries})


def _expression(session: Session, token: str) -> Iterator[Completion]:
    """``st.op`` goes on as the path ``state.op`` does."""
    token = token.lstrip("'\"")
    root, dot, rest = token.partition(".")
    if dot and root in _ROOTS:
        prefix = f"{_ROOTS[root]}.{rest}"
        for path in paths_of(session.walk.tree, prefix):
            yield Completion(root + path.removeprefix(_ROOTS[root]), len(token))
    elif root == "ev" and dot:
        yield from _attributes("ev.", session.event(session.at), rest, len(token))
    else:
        yield from _beginning(("st", "run", "ev", "version", "not", "len"), token)


def _python(session: Session, text: str) -> Iterator[Completion]:
    found = _NAME.search(text)
    if found is None:
        return
    before, last = found["before"] or "", found["last"] or ""
    live = session.live()
    if not before:
        names = {*LIVE, *(name for name in session.namespace if not name.startswith("_")), *(keyword.kwlist if last else ())} - set(ENTRIES)
        if last:
            yield from _beginning(sorted(names), last)
        return
    root, *steps = before.rstrip(".").split(".")
    if "[" in before or (root not in live and root not in session.namespace):
        return
    value = _valued(live, session.namespace, root)
    for step in steps:
        value = getattr(value, step, None)
    yield from _attributes("", value, last, len(last))


def _valued(live: dict[str, Callable[[], Any]], namespace: dict[str, Any], root: str) -> Any:
    return live[root]() if root in live else namespace[root]


def _attributes(prefix: str, value: Any, begin: str, replaces: int) -> Iterator[Completion]:
    names = list(value) if isinstance(value, dict) and prefix else dir(value)
    for name in names:
        if isinstance(name, str) and name.startswith(begin) and (begin.startswith("_") or not name.startswith("_")):
            yield Completion(f"{prefix}{name}", replaces)
