"""Dedup stores: what makes a bus's repeated deliveries of one intent into one execution and one outcome.

Modules by reason to change: ``store`` (the promise), ``errors``, ``checking`` (what every store refuses), ``address`` (URLs,
masking), ``rules`` (the transitions) with ``kept``, ``memory`` and ``sqlite`` over them, ``postgres`` (``sql/``), ``redis`` (``lua/``),
``patience`` (servers that go away), ``opening``. Client libraries are imported when a URL asks for them.
"""

from __future__ import annotations

from .errors import (
    AlreadyDone,
    ClientMissing,
    DedupError,
    DedupSchemaError,
    InvalidDedupUrl,
    ResultTooLarge,
    RetryableDedupError,
    StaleToken,
    StoreUnavailable,
    StoreUnfit,
    TerminalDedupError,
)
from .opening import open_dedup
from .store import Busy, Claimed, DedupStore, Done, Free

__all__ = [
    "AlreadyDone",
    "Busy",
    "Claimed",
    "ClientMissing",
    "DedupError",
    "DedupSchemaError",
    "DedupStore",
    "Done",
    "Free",
    "InvalidDedupUrl",
    "ResultTooLarge",
    "RetryableDedupError",
    "StaleToken",
    "StoreUnavailable",
    "StoreUnfit",
    "TerminalDedupError",
    "open_dedup",
]
