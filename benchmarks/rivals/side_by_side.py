"""Units of a rival on several threads at once, after each thread has done one that is not counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from threading import Barrier
from typing import Any, TypeVar

T = TypeVar("T")


def seconds_of(do: Callable[[T], Any], units: Sequence[T], threads: int) -> float:
    """Do the first ``threads`` units to warm up, one on each thread; then the seconds that the others take."""
    met = Barrier(threads)

    def first(unit: T) -> None:
        met.wait()  # so that no thread does two of them
        do(unit)

    with ThreadPoolExecutor(threads) as pool:
        _all(pool.map(first, units[:threads]))
        began = time.perf_counter()
        _all(pool.map(do, units[threads:]))
        return time.perf_counter() - began


def _all(results: Iterable[Any]) -> None:
    """Wait for them; the first error is raised here."""
    for _ in zip(results, repeat(None)):
        pass
