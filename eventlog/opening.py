"""From a URL to a log. The store's module is imported only when its scheme is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from .clock import Clock, system_clock
from .errors import InvalidUrl, StoreSchemaError
from .masking import masked_url

if TYPE_CHECKING:
    from types import ModuleType

    from .log import EventLog

#: scheme → (module relative to this package, function ``(url, clock) -> EventLog``)
_STORES: Final = {
    "memory": (".memory", "open_memory"),
    "sqlite": (".sqlite", "open_sqlite"),
    "postgresql": (".postgres", "open_postgres"),
    "postgres": (".postgres", "open_postgres"),
}
#: Stores that need more to be prepared than to be opened for writing: scheme → function ``(url) -> bool`` of the same module.
_PREPARING: Final = {"sqlite": "prepare_sqlite", "postgresql": "prepare_postgres", "postgres": "prepare_postgres"}
#: What a store's driver is called, and how it gets here.
_DRIVERS: Final = {"psycopg": "pip install 'intentlog[postgres]'", "psycopg_pool": "pip install 'intentlog[postgres]'"}


#: The commands that take a bundle where the others take a log.
READ_BUNDLES: Final = "show, state, diff, why, bisect, trace, search, replay, preflight, verify, raw, bundle, fork, merge, shell"


def open_log(url: str, *, clock: Clock = system_clock, create: bool = True, read_only: bool = False) -> EventLog:
    """The log behind ``url``: ``memory://``, ``sqlite:///relative/path.db`` (``sqlite:////absolute/path.db``), ``postgresql://user@host/database``.

    ``create=False`` refuses to make a log that is not there yet (``StoreSchemaError``). ``read_only=True`` does too, needs no right to
    write, and gives a log whose writing methods raise ``TerminalError``. Raises ``InvalidUrl`` for a URL
    that no store understands.
    """
    module, function = _store(url)
    return cast("EventLog", getattr(module, function)(url, clock=clock, create=create, read_only=read_only))


def prepare_log(url: str) -> bool:
    """Make the log behind ``url``, or bring it up to date (what ``eventlog init`` does); whether there was anything to do.

    Raises ``InvalidUrl``; ``StoreSchemaError`` for a log of a newer release or without the right to make it; ``LogUnavailable``.
    """
    module, _ = _store(url)
    preparing = _PREPARING.get(url.partition("://")[0])
    if preparing is not None:
        return cast("bool", getattr(module, preparing)(url))
    try:
        open_log(url, create=False, read_only=True).close()
    except StoreSchemaError:  # what cannot be made, or brought up to date, says so now
        open_log(url).close()
        return True
    return False


def _store(url: str) -> tuple[ModuleType, str]:
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in _STORES:
        if url.startswith("bundle:") or (not scheme and url.endswith(".bundle")):
            raise InvalidUrl(f"{url!r:.200} is a bundle, and this reads logs only. What reads bundles: {READ_BUNDLES}.")
        known = ", ".join(f"{name}://" for name in _STORES)
        raise InvalidUrl(f"No store understands the log URL {masked_url(url)!r:.200}; it must begin with one of {known}. On a laptop: sqlite:///eventlog.db")
    module, function = _STORES[scheme]
    try:
        return import_module(module, __package__), function
    except ModuleNotFoundError as error:
        if error.name not in _DRIVERS:
            raise
        raise InvalidUrl(f"A {scheme}:// log needs {error.name}, which is not installed here. Install it with: {_DRIVERS[error.name]}") from error
