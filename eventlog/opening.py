"""From a URL to a log. The store's module is imported only when its scheme is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from .clock import Clock, system_clock
from .errors import InvalidUrl

if TYPE_CHECKING:
    from .log import EventLog

#: scheme → (module relative to this package, function ``(url, clock) -> EventLog``)
_STORES: Final = {
    "memory": (".memory", "open_memory"),
    "sqlite": (".sqlite", "open_sqlite"),
}


def open_log(url: str, *, clock: Clock = system_clock, create: bool = True, read_only: bool = False) -> EventLog:
    """The log behind ``url``: ``memory://`` or ``sqlite:///relative/path.db`` (``sqlite:////absolute/path.db``).

    ``create=False`` refuses to make a log that is not there yet (``StoreSchemaError``). ``read_only=True`` does too, needs no right to
    write, and gives a log whose writing methods raise ``TerminalError``. Raises ``InvalidUrl`` for a URL
    that no store understands.
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in _STORES:
        known = ", ".join(f"{name}://" for name in _STORES)
        raise InvalidUrl(f"No store understands the log URL {url!r:.200}; it must begin with one of {known}. On a laptop: sqlite:///eventlog.db")
    module, function = _STORES[scheme]
    return cast("EventLog", getattr(import_module(module, __package__), function)(url, clock=clock, create=create, read_only=read_only))
