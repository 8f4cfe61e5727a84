"""``PERSISTENCE_MODULE=intentlog.eventlog.recorders.memory``: a log that lives as long as its application, for tests."""

from __future__ import annotations

from . import factory


class MemoryFactory(factory.LogFactory):
    """Recorders over one new ``memory://`` log; ``EVENTLOG_URL`` is not looked at."""

    def _url(self) -> str:
        return "memory://"

    def _may_create(self) -> bool:
        return True
