"""Conformance kits for what is plugged into the effector. Plain functions; no test framework is needed.

::

    check_dedup(DedupMaker("mine", make=lambda folder: MyStore(folder / "dedup")))
    check_bus(BusMaker("mine", make=MyBus, url=lambda topic, partitions: my_url_of(topic, partitions)))
"""

from __future__ import annotations

from .bus import BUS_CHECKS, BusMaker, check_bus
from .dedup import DEDUP_CHECKS, DedupMaker, check_dedup

__all__ = ["BUS_CHECKS", "DEDUP_CHECKS", "BusMaker", "DedupMaker", "check_bus", "check_dedup"]
