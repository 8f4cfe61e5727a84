"""How much is measured: ``FULL`` for figures that count, ``QUICK`` for a look, ``TINY`` to see that everything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs

Told: TypeAlias = Callable[[str], None]
"""Is told what is being measured now."""


@attrs.frozen
class Sizes:
    """One run's amounts."""

    rounds: int
    #: P1: activations of ours, units of each rival.
    activations: int
    rival_units: int
    #: P2: events of the stream.
    events: int
    #: P3: lengths of the streams whose code is run again, shortest first.
    replayed: tuple[int, ...]
    #: P4: ages of a key in activations, each followed by a window that is weighed.
    ages: tuple[int, ...]
    window: int
    #: P5: events of the key without a snapshot.
    short_key: int
    #: P6: intents to settle, and how many are timed one by one.
    intents: int
    idle_intents: int
    #: P5 and P7: events of the long key.
    long_log: int
    #: P8: how many write at once, and for how many seconds.
    writers: int
    seconds: float
    #: Whether the figures may be held against the committed ratios.
    counts: bool = True


FULL: Final = Sizes(
    rounds=5,
    activations=6_000,
    rival_units=150,
    events=20_000,
    replayed=(1_000, 10_000, 100_000),
    ages=(10, 1_000, 9_500),
    window=500,
    short_key=10_000,
    intents=2_000,
    idle_intents=60,
    long_log=1_000_000,
    writers=16,
    seconds=2.0,
)
QUICK: Final = Sizes(
    rounds=2,
    activations=2_000,
    rival_units=20,
    events=20_000,
    replayed=(1_000, 20_000),
    ages=(10, 400, 800),
    window=200,
    short_key=10_000,
    intents=500,
    idle_intents=20,
    long_log=100_000,
    writers=16,
    seconds=1.0,
    counts=False,
)
TINY: Final = Sizes(
    rounds=1,
    activations=60,
    rival_units=2,
    events=600,
    replayed=(60, 600),
    ages=(2, 20),
    window=12,  # fewer may find room in pages that are there
    short_key=600,
    intents=40,
    idle_intents=3,
    long_log=2_500,
    writers=3,
    seconds=0.1,
    counts=False,
)
