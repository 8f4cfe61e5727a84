"""Processes on this machine that died and hold leases still."""

from __future__ import annotations

from ..eventlog.log import EventLog
from ..eventlog.owners import is_dead


def evict_dead(log: EventLog) -> None:
    """End the leases of processes that died on this machine; only a store whose users are all on it can know."""
    if not is_local(log):
        return
    for owner in log.schedule.owners():
        if is_dead(owner):
            log.schedule.evict(owner)


def is_local(log: EventLog) -> bool:
    """Whether everybody who uses the log is on this machine."""
    return not log.served
