"""The state of a stream at two places, and what differs between them."""

from __future__ import annotations

from typing import Any

import attrs

from ..agents.app import App
from ..eventlog.log import EventLog
from .aggregates import folder_of
from .copying import copied
from .diff import Change, diff
from .errors import NoSuchPath
from .fold import At, state_as_tree, version_at
from .holes import whole
from .paths import ABSENT, Path, look, what_there_is


@attrs.frozen
class Difference:
    """From version ``a`` to version ``b``."""

    stream: str
    a: int
    b: int
    changes: tuple[Change, ...]


def differing(log: EventLog, app: App, stream: str, a: At | int | None, b: At | int | None = None, path: Path | None = None) -> Difference:
    """What differs in the state of ``stream`` between ``a`` and ``b`` (``None``: its head), or in the part at ``path`` only.

    ``a`` may be the later one. Raises ``NoSuchPath`` when nothing stands there at either, and what ``state_at`` raises.
    """
    versions = version_at(log, stream, a), version_at(log, stream, b)
    trees = _trees(log, app, stream, min(versions), max(versions))
    first, second = trees if versions[0] <= versions[1] else (trees[1], trees[0])
    if path is None:
        return Difference(stream, *versions, tuple(each for part in ("state", "run") for each in diff(first[part], second[part], (part,))))
    left, right = look(first, path), look(second, path)
    if left is ABSENT and right is ABSENT:
        raise NoSuchPath(f"{stream}: {what_there_is(second, path)}")
    return Difference(stream, *versions, diff(left, right, path))


def _trees(log: EventLog, app: App, stream: str, low: int, high: int) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = folder_of(app, stream)
    state = folder.empty(stream)
    for rows in whole(stream, log.rows(stream, upto=low)):
        folder.fold(state, rows)
    first = state_as_tree(copied(state))
    for rows in whole(stream, log.rows(stream, after=low, upto=high), low):
        folder.fold(state, rows)
    return first, state_as_tree(state)
