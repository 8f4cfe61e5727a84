"""From a URL to a bus. Its module, and with it the client library, is imported only when its scheme is asked for.

Buses of other distributions are found by the entry point group ``intentlog.buses``: the scheme, and a function without
parameters that makes the ``Bus``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from ...eventlog.masking import masked_url
from .errors import BadBusUrl, BusClientMissing

if TYPE_CHECKING:
    from .protocol import Bus

GROUP: Final = "intentlog.buses"
"""The entry point group."""
MakeBus: TypeAlias = "Callable[[], Bus]"
#: scheme → (module relative to this package, class, the client library's module, extra that brings it)
_OURS: Final[Mapping[str, tuple[str, str, str, str]]] = {"memory": (".memory", "MemoryBus", "", "")}


class Buses:
    """The buses that one process uses, each made once. ``given``: makers by scheme, which outrank all others."""

    def __init__(self, given: Mapping[str, MakeBus] | None = None) -> None:
        self._given = dict(given or {})
        self._made: dict[str, Bus] = {}

    def at(self, url: str) -> Bus:
        """The bus of ``url``, which may be used on it. Raises ``BadBusUrl`` and ``BusClientMissing``."""
        scheme = url.partition("://")[0] if "://" in url else ""
        if scheme not in self._made:
            self._made[scheme] = self._maker(scheme, url)()
        bus = self._made[scheme]
        bus.check(url)
        return bus

    def close(self) -> None:
        """Close what was made."""
        made, self._made = self._made, {}
        for each in made.values():
            each.close()

    def _maker(self, scheme: str, url: str) -> MakeBus:
        if scheme in self._given:
            return self._given[scheme]
        if scheme in _OURS:
            return _ours(scheme)
        for each in entry_points(group=GROUP):
            if each.name == scheme:
                return cast("MakeBus", each.load())
        known = ", ".join(f"{each}://" for each in sorted({*self._given, *_OURS, *(each.name for each in entry_points(group=GROUP))}))
        if url == f"{scheme}://":
            raise BadBusUrl(
                f"{scheme}:// alone names nothing, and no bus here is called so; it must begin with one of {known}, or with eventlog: for the log's own tail"
            )
        raise BadBusUrl(f"no bus here understands {masked_url(url)!r:.300}; it must begin with one of {known}, or with eventlog: for the log's own tail")


def _ours(scheme: str) -> MakeBus:
    module, name, client, extra = _OURS[scheme]
    try:
        return cast("MakeBus", getattr(import_module(module, __package__), name))
    except ModuleNotFoundError as missing:
        if not client or missing.name != client:
            raise
        raise BusClientMissing(f"{scheme}:// needs the library {client}, which is not installed: pip install 'intentlog[{extra}]'") from missing
