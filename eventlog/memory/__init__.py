"""The memory store: a real store, and the shortest reading of what ``log.py`` promises.

One lock, dicts and lists. The log lives in its object: opening ``memory://`` twice, with or without a name behind it,
gives two empty logs. Nothing outlives the process; everything else holds as in the other stores.
"""

from __future__ import annotations

import re
from typing import Final

from ..clock import Clock, system_clock
from ..errors import InvalidUrl, StoreSchemaError
from ..log import EventLog
from .store import MemoryLog

__all__ = ["MemoryLog", "open_memory"]

_URL: Final = re.compile(r"memory://[\w.-]*\Z")


def open_memory(url: str = "memory://", *, clock: Clock = system_clock, create: bool = True, read_only: bool = False) -> EventLog:
    """A fresh, empty log; the name after ``memory://`` is only a label.

    Raises ``InvalidUrl`` for a URL of another form, and ``StoreSchemaError`` when ``create`` is false or it is to be read only: no memory log is
    there before it is opened.
    """
    if not _URL.match(url):
        raise InvalidUrl(f"Invalid memory URL {url!r:.200}: it is memory:// or memory://name, the name of letters, digits, '_', '.' and '-'.")
    if not create or read_only:
        raise StoreSchemaError(f"{url} holds no log: a memory log begins when it is opened. Open it with create=True, or name a log on disk.")
    return MemoryLog(url, clock)
