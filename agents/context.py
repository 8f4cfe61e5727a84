"""What an agent's code holds in its hands during one turn, under its public name.

Built up from ``held`` (what it holds), ``recorded`` (what the log says), ``steps``, ``linear``, ``others`` and
``undoing`` (what it can do).
"""

from __future__ import annotations

from typing import Generic, TypeVar

from .undoing import Undoing

S = TypeVar("S")


class ActivationContext(Undoing, Generic[S]):
    """One turn of one activation. Nothing staged here is visible to anyone before the turn's append (S-3.2)."""

    #: The aggregate's state, with what this turn emitted applied.
    state: S
