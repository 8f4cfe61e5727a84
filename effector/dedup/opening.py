"""From a URL to a dedup store. The store's module, and with it the client library, is imported only when its scheme is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from .address import masked
from .errors import ClientMissing, InvalidDedupUrl

if TYPE_CHECKING:
    from .store import DedupStore

#: scheme → (module relative to this package, function ``(url, create) -> DedupStore``, extra that brings the client)
_STORES: Final = {
    "memory": (".memory", "open_memory", ""),
    "sqlite": (".sqlite", "open_sqlite", ""),
    "postgresql": (".postgres", "open_postgres", "postgres"),
    "postgres": (".postgres", "open_postgres", "postgres"),
    "redis": (".redis", "open_redis", "redis"),
    "rediss": (".redis", "open_redis", "redis"),
}


def open_dedup(url: str, *, create: bool = True) -> DedupStore:
    """The dedup store behind ``url``: ``memory://``, ``sqlite:///file.db``, ``postgresql://…`` or ``redis://…`` (docs/dedup-stores.md).

    ``create=False`` refuses to make tables that are not there yet (``DedupSchemaError``). Raises, at once and with the credentials
    masked, ``InvalidDedupUrl``, ``ClientMissing``, ``DedupSchemaError``, ``StoreUnfit`` and ``StoreUnavailable``.
    """
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in _STORES:
        raise InvalidDedupUrl(
            f"No dedup store understands {masked(url)!r}; it must begin with one of memory://, sqlite://, postgresql://, redis://, rediss://. "
            "On a laptop: sqlite:///dedup.db"
        )
    module, function, extra = _STORES[scheme]
    try:
        opener = getattr(import_module(module, __package__), function)
    except ModuleNotFoundError as missing:
        if missing.name not in ("psycopg", "redis"):
            raise
        raise ClientMissing(f"{scheme}:// needs the {missing.name} library, which is not installed: pip install 'intentlog[{extra}]'") from missing
    return cast("DedupStore", opener(url, create=create))
