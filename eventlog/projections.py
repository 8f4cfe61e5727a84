"""Views built from the log. A projection's rows and its checkpoint move together, or not at all.

A *poison* event is one that cannot be decoded or whose handler raises; ``OnError`` says what happens then.
``RetryableError`` (the store is away, for instance) is never poison: it ends the run and leaves view and checkpoint as
they were. Each version of a projection has a view of its own; which one readers see is changed in one step by ``swap``.
"""

from __future__ import annotations

from .projecting.advancing import Progress
from .projecting.beside import Swapped, drop, rebuild_beside, swap, swap_as_it_is
from .projecting.comparing import Comparison, compare
from .projecting.declared import Decoder, Handler, OnError, Projection, Projections
from .projecting.keeping_up import Ended, catch_up, follow, rebuild, run_all
from .projecting.parking import Retried, retry_parked
from .projecting.standing import Lag, Standing, lag_of, standings

__all__ = [
    "Comparison",
    "Decoder",
    "Ended",
    "Handler",
    "Lag",
    "OnError",
    "Progress",
    "Projection",
    "Projections",
    "Retried",
    "Standing",
    "Swapped",
    "catch_up",
    "compare",
    "drop",
    "follow",
    "lag_of",
    "rebuild",
    "rebuild_beside",
    "retry_parked",
    "run_all",
    "standings",
    "swap",
    "swap_as_it_is",
]
