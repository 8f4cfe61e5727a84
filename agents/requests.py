"""The closed set of things a turn can ask for, and the one way it ends.

The core (``activation``) yields these; a driver answers them: the worker by asking a provider and writing the journal,
replay by refusing, a test by a script. Nothing else ever leaves the core.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import attrs

from ..eventlog.log import EventLog
from . import facts
from .models import ModelRequest
from .retry import RetryPolicy


@attrs.frozen
class NeedModel:
    """A model answer that is not in the journal. Answer with the ``ModelResponse`` as decoded from what was stored."""

    step: int
    digest: bytes
    request: ModelRequest
    #: ``request`` as canonical bytes: what the digest was made of, and what goes into the journal.
    encoded: bytes


@attrs.frozen(eq=False)
class NeedRead:
    """The result of a read-only tool or a ``ctx.run`` that is not in the journal. Answer with its ``ToolCallCached``."""

    index: int
    tool: str
    digest: bytes
    args: dict[str, Any]
    #: Runs it: returns an awaitable when ``is_async``, and may block when not.
    call: Callable[[], Any]
    is_async: bool
    #: The annotated type of the value.
    returns: Any
    #: Seconds one call may take, or ``None``.
    timeout: float | None
    #: How to try again when it raises; ``None``: not at all.
    retry: RetryPolicy | None = None


@attrs.frozen(eq=False)
class NeedStream:
    """Another aggregate, folded from its stream. Answer with ``read(log, version, snapshot_every)``, a ``Loaded``."""

    step: int
    stream: str
    #: The version that is on record for this step; ``None``: as it is now.
    version: int | None
    read: Callable[[EventLog, int | None, int], Any]


@attrs.frozen
class Change:
    """Events for another aggregate's stream, encoded: ``(type, schema, bytes)``."""

    stream: str
    #: The version it is expected to be at.
    expected: int
    events: tuple[tuple[str, int, bytes], ...]


Request: TypeAlias = NeedModel | NeedRead | NeedStream
REQUESTS = (NeedModel, NeedRead, NeedStream)
Answer: TypeAlias = Any
"""A ``ModelResponse``, a ``ToolCallCached`` or a ``Loaded``."""


@attrs.frozen
class TurnEnd:
    """What one turn staged, in order, and how it closed. Nothing of it is visible before the append (S-3.2)."""

    #: Domain events, ``IntentStaged``, ``TimerArmed``, ``Traced``; the closing fact is last.
    staged: tuple[object, ...]
    closing: facts.Suspended | facts.Completed | facts.Continued
    #: Canonical bytes of each staged intent's arguments, by intent id: they were made for its digest.
    arguments: Mapping[str, bytes] = attrs.field(factory=dict)
    #: Inputs for other streams, delivered by the same append.
    sends: tuple[tuple[str, facts.InputReceived], ...] = ()
    #: What was loaded and is not written down yet; it goes in front.
    loads: tuple[facts.AggregateLoaded, ...] = ()
    #: Events for other aggregates, by the same append.
    changes: tuple[Change, ...] = ()


@types.coroutine
def ask(request: Request) -> Generator[Request, Any, Any]:
    """Hand ``request`` to the driver and wait for its answer."""
    return (yield request)
