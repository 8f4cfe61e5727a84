"""The conformance kit: what every store must do, as plain functions over a ``StoreMaker``. No test framework is needed.

::

    maker = StoreMaker("mine", make=lambda folder, clock: open_log(f"sqlite:///{folder}/log.db", clock=clock))
    check_log(maker)

Each check makes its own log, and fails with an ``AssertionError`` that says what differs. To run them one by one,
parametrise over ``CHECKS``. The Hypothesis state machine is in ``testing.machine``; only that module needs Hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import appends, beside, idempotency, keeping, pointing, projecting, races, reads, schedules, tails
from .maker import StoreMaker

__all__ = ["CHECKS", "StoreMaker", "check_log"]

CHECKS: Final[tuple[Callable[[StoreMaker], None], ...]] = (
    *appends.CHECKS,
    *idempotency.CHECKS,
    *reads.CHECKS,
    *races.CHECKS,
    *tails.CHECKS,
    *keeping.CHECKS,
    *schedules.CHECKS,
    *pointing.CHECKS,
    *projecting.CHECKS,
    *beside.CHECKS,
)
"""Every check. What a store cannot do (see ``StoreMaker``) is left out inside the check."""


def check_log(maker: StoreMaker) -> None:
    """Run every check; raises the first ``AssertionError``, with the check's name and promise noted on it."""
    for check in CHECKS:
        try:
            check(maker)
        except Exception as error:
            error.add_note(f"{maker.name}: {check.__module__}.{check.__name__}: {check.__doc__}")
            raise
