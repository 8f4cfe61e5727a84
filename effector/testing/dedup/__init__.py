"""The conformance kit of dedup stores: every promise of ``effector/dedup/store.py``, one check each.

Each check makes its own store, and fails with an ``AssertionError`` that says what differs. To run them one by one,
parametrise over ``DEDUP_CHECKS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import claims, clocks, kills, outcomes, races
from .maker import DedupMaker

__all__ = ["DEDUP_CHECKS", "DedupMaker", "check_dedup"]

DEDUP_CHECKS: Final[tuple[Callable[[DedupMaker], None], ...]] = (*claims.CHECKS, *outcomes.CHECKS, *clocks.CHECKS, *races.CHECKS, *kills.CHECKS)
"""Every check. What a store cannot do (see ``DedupMaker``) is left out inside the check."""


def check_dedup(maker: DedupMaker) -> None:
    """Run every check; raises the first ``AssertionError``, with the check's name and promise noted on it."""
    for check in DEDUP_CHECKS:
        try:
            check(maker)
        except Exception as error:
            error.add_note(f"{maker.name}: {check.__module__}.{check.__name__}: {check.__doc__}")
            raise
