"""Conformance kits for what is plugged into the effector. Plain functions; no test framework is needed.

::

    check_dedup(DedupMaker("mine", make=lambda folder: MyStore(folder / "dedup")))
"""

from __future__ import annotations

from .dedup import DEDUP_CHECKS, DedupMaker, check_dedup

__all__ = ["DEDUP_CHECKS", "DedupMaker", "check_dedup"]
