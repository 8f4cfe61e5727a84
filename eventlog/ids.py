"""Event ids: 16 bytes that sort by time of making, so that a unique index over them grows at its right edge.

The layout follows UUID version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, version, 12 bits, variant, 62 bits.
Here the last 74 bits start random in each millisecond and count up inside it, which keeps one maker's ids in order.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, TypeAlias

from .clock import Clock, system_clock

IdMaker: TypeAlias = Callable[[], bytes]
_VERSION: Final = 7 << 76
_VARIANT: Final = 2 << 62
_LOW62: Final = (1 << 62) - 1


def id_maker(clock: Clock = system_clock, entropy: Callable[[int], bytes] = os.urandom) -> IdMaker:
    """A thread-safe maker of event ids, fed by ``clock`` and ``entropy`` (``entropy(n)`` gives n random bytes)."""
    lock = threading.Lock()
    millis, base, low = -1, 0, 0

    def make() -> bytes:
        nonlocal millis, base, low
        now = clock() // 1_000
        with lock:
            if now > millis:
                seed = int.from_bytes(entropy(10), "big")
                millis, low = now, (seed & _LOW62) >> 1
                base = now << 80 | _VERSION | (seed >> 68 & 0xFFF) << 64 | _VARIANT
            else:
                low = (low + 1) & _LOW62
            return (base | low).to_bytes(16, "big")

    return make
