"""Runs that nobody kills, to compare with; made when first asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.acceptance.kill.laws import faults
from tests.acceptance.kill.lives import Case, Order, case
from tests.stores import Store

Unkilled = Callable[[list[Order]], Case]


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory, shared_store: Store) -> Iterator[Unkilled]:
    """The same orders, lived through in one life without a kill."""
    known: dict[tuple[Order, ...], Case] = {}
    lock = threading.Lock()
    with ExitStack() as held:

        def run(orders: list[Order]) -> Case:
            with lock:
                if tuple(orders) not in known:
                    made = held.enter_context(case(shared_store, tmp_path_factory.mktemp("unkilled") / "case", orders))
                    made.forks = False  # and so with hashes of its own
                    made.live()
                    assert [] == faults(made)
                    known[tuple(orders)] = made
                return known[tuple(orders)]

        yield run
