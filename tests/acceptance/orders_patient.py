"""examples/orders with a person who has all the time in the world: on a busy machine a process may take long to come back."""

from __future__ import annotations

from datetime import timedelta

import examples.orders.agent as orders
from examples.orders import app

__all__ = ["app", "hours"]


def hours(number: float) -> timedelta:
    """As they are, whatever a day is."""
    return timedelta(hours=number)


setattr(orders, "hours", hours)  # noqa: B010 - in the children and in the test alike, which runs the code once more
