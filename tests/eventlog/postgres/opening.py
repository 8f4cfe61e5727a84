"""A log in PostgreSQL, known as one, for tests that look behind its protocol."""

from __future__ import annotations

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres import PostgresLog


def opened(url: str, *, create: bool = True, read_only: bool = False) -> PostgresLog:
    """As ``open_log``."""
    log = open_log(url, create=create, read_only=read_only)
    assert isinstance(log, PostgresLog)
    return log
