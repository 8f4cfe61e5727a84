"""What a plan may ask of the shell that runs it: a closed set of actions. The plans themselves are in ``turns``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import attrs

from ..eventlog.log import AppendRequest, Snapshot
from .requests import NeedStream


@attrs.define(slots=True)
class Commit:
    """Make ``request`` durable; answer with its outcome."""

    request: AppendRequest
    #: The next turn's time begins after it.
    ends_turn: bool = False


@attrs.define(slots=True)
class Ask:
    """Answer with what ``start()`` gives, waiting for it within the turn's time if it is awaitable; or throw what it raised."""

    start: Callable[[], Any]


@attrs.define(slots=True)
class Load:
    """Fold the stream from the log; answer with its ``StreamState``."""

    stream: str


@attrs.define(slots=True)
class Keep:
    """Save a snapshot; no answer."""

    stream: str
    snapshot: Snapshot


@attrs.define(slots=True)
class Fetch:
    """Read another aggregate; answer with its ``Loaded``."""

    need: NeedStream
    snapshot_every: int


Action: TypeAlias = Commit | Ask | Load | Keep | Fetch
Plan: TypeAlias = Generator[Action, Any, int]
