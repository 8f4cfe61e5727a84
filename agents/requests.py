"""The closed set of things a turn can ask for, and the one way it ends.

The core (``activation``) yields these; a driver answers them: the worker by asking a provider and writing the journal,
replay by refusing, a test by a script. Nothing else ever leaves the core.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import attrs

from . import facts
from .models import ModelRequest, ModelResponse


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


Request: TypeAlias = NeedModel | NeedRead
REQUESTS = (NeedModel, NeedRead)
Answer: TypeAlias = ModelResponse | facts.ToolCallCached


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


@types.coroutine
def ask(request: Request) -> Generator[Request, Any, Any]:
    """Hand ``request`` to the driver and wait for its answer."""
    return (yield request)
