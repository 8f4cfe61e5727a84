"""Commands that change which code folds: ``load``, ``reload``, ``unload``. The fold is redone and what differs is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import attrs
import click

from ...agents.errors import AgentError
from ...eventlog.console import FOUND, OK, CouldNot
from ...eventlog.errors import LogError
from ...eventlog.names import category_of
from ..diff import diff
from ..paths import field_names
from .answers import Answer, answer
from .lines import words_of
from .loading import Loaded
from .rendering import change_line, remark
from .session import Session

_MOST_CHANGES: Final = 40


def load(session: Session, rest: str) -> Answer:
    """Fold with code from a file from now on; without one, say what is loaded."""
    words = words_of(rest)
    if not words:
        loaded = session.loaded
        return answer(remark(f"{loaded.path}:{loaded.name}" if loaded is not None else f"nothing is loaded; {session.app_spec or 'no app'} folds"))
    if len(words) > 1:
        raise click.UsageError("load takes one file: load account.py   load account.py:Account")
    place, _, name = words[0].partition(":")
    return _replaced(session, _loaded(session, Path(place), name))


def reload(session: Session, rest: str) -> Answer:
    """Load the file again as it is now."""
    if session.loaded is None:
        raise click.UsageError("Nothing is loaded: load FILE[:NAME] first.")
    return _replaced(session, _loaded(session, session.loaded.path, session.loaded.name))


def unload(session: Session, rest: str) -> Answer:
    """Fold with the session's own app again."""
    return _replaced(session, None)


def _loaded(session: Session, path: Path, name: str) -> Loaded:
    if not session.python:
        raise click.UsageError("Code is not loaded here (--no-python): load runs a file's Python.")
    category = category_of(session.stream) if session.stream else ""
    return session.loader.load(path, name, category, session.app)


def _replaced(session: Session, loaded: Loaded | None) -> Answer:
    """Put the code in force; should it not fold this history, the code before stays."""
    session.walk  # noqa: B018 - a stream must be open
    before, rows = as_fields(session.walk.tree["state"]), session.rows_at(session.at)
    kept, at = session.loaded, session.at
    session.loaded = loaded
    try:
        session.open(session.stream, at)
        if session.at < at and session.walk.broken is not None:
            raise session.walk.broken
    except Exception as problem:
        session.loaded = kept
        session.open(session.stream, at)
        if isinstance(problem, LogError | AgentError) and kept is not loaded:
            raise CouldNot(f"{problem}. What folded before still does.") from problem
        raise
    named = f"{loaded.path.name}:{loaded.name}" if loaded is not None else session.app_spec or "the app"
    parts: list[Any] = [remark(f"{named} folds now")]
    if loaded is not None and loaded.projection is not None:
        changes = diff({"view": rows}, {"view": session.rows_at(session.at)})
        fault = session.projected().at(session.at).fault
        parts += [remark(f"it stopped: {fault}")] if fault else []
    else:
        changes = diff({"state": before}, {"state": as_fields(session.walk.tree["state"])})
    parts += [change_line(each) for each in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        parts.append(remark(f"  … and {len(changes) - _MOST_CHANGES:,} more"))
    if not changes:
        parts.append(remark(f"nothing differs at version {session.at}"))
    return Answer(tuple(parts), FOUND if changes else OK)


def as_fields(value: Any) -> Any:
    """``value`` with every attrs object as a mapping of its fields: a class that was loaded again is another class."""
    if attrs.has(type(value)):
        return {name: as_fields(getattr(value, name)) for name in field_names(type(value))}
    if isinstance(value, dict):
        return {key: as_fields(each) for key, each in value.items()}
    return type(value)(map(as_fields, value)) if type(value) in (list, tuple) else value
