"""A replica on a bus: a topic brings intents, a dedup store decides, topics take outcomes, questions and dead letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from ...eventlog.clock import MILLISECOND, Clock, system_clock
from ...eventlog.masking import masked_url
from ..dedup import DedupStore, open_dedup
from ..dedup.errors import StoreUnavailable, TerminalDedupError
from ..grounds import QUIET, Making
from ..keeping import Part
from ..settings import LOG_SCHEME, Settings, named
from .engine import PARTS, PASSIVE, BusEffector
from .errors import BadBusUrl, BusClientMissing
from .holding import RENEWALS
from .means import BusSettings
from .opening import Buses, MakeBus
from .protocol import Bus

TOPICS: Final = ("intents_from", "results_to", "approvals_to", "dead_letters_to")
"""The options that name a topic."""


class BusEngine(BusEffector):
    """The engine of a replica; nothing runs beside it."""

    caveats: tuple[str, ...] = ()

    def report(self) -> dict[str, Any]:
        """The same, and what the dedup store may forget the way it is set up."""
        return super().report() | {"dedup_caveats": list(self.caveats)}

    def beside(self) -> Mapping[str, Part]:
        """No parts."""
        return {}


@attrs.frozen(eq=False)
class OnBus:
    """Buses that understand their URLs, and a store that is open."""

    settings: Settings
    buses: Buses
    by_option: Mapping[str, Bus]
    store: DedupStore
    clock: Clock = system_clock

    def told(self) -> dict[str, Any]:
        said = {name: masked_url(getattr(self.settings, name)) for name in TOPICS}
        return said | {"dedup": self.store.url, "group": self.settings.consumer_group}

    def quiet(self, settings: Settings) -> dict[str, float]:
        quiet = dict.fromkeys((*PARTS, *PASSIVE), QUIET + settings.poll_ms / 1000)
        return quiet | {RENEWALS: QUIET + settings.lease_ms / 3000}

    def engine(self, making: Making) -> BusEngine:
        s, buses = self.settings, self.by_option
        engine = BusEngine(
            making.registry.codec,
            making.registry.tools,
            self.store,
            lambda: buses["intents_from"].source(s.intents_from, group=s.consumer_group, member=making.owner),
            results=lambda: buses["results_to"].sink(s.results_to),
            approvals=lambda: buses["approvals_to"].sink(s.approvals_to),
            dead_letters=lambda: buses["dead_letters_to"].sink(s.dead_letters_to),
            owner=making.owner,
            clock=self.clock,
            settings=BusSettings(
                concurrency=s.max_concurrent_partitions,
                lease=s.lease_ms * MILLISECOND,
                result_ttl=s.result_ttl_ms * MILLISECOND,
                poll=s.poll_ms / 1000,
                grace=s.grace_ms / 1000,
                hold_unknown=s.unknown_tools == "hold",
            ),
            boundary=making.boundary,
            on_error=making.on_error,
            watching=making.watching,
            verifier=making.verifier,
            keys=making.keys,
        )
        engine.caveats = self.store.caveats
        for each in engine.caveats:
            making.lines.warning("dedup store may forget", dedup=self.store.url, text=each)
        return engine

    def close(self) -> None:
        self.buses.close()
        self.store.close()


def open_on_bus(settings: Settings, given: Mapping[str, MakeBus] | None, problems: list[str]) -> OnBus | None:
    """What ``settings`` name; ``None`` when something is wrong with them. All of that is added to ``problems``.

    Raises ``StoreUnavailable`` when nothing is, and only the store cannot be reached now.
    """
    buses = Buses(given)
    found = {name: bus for name in TOPICS for bus in _bus(buses, settings, name, problems)}
    problems += _alone(settings, found, given or {})
    store = None
    try:
        if not settings.dedup.startswith(LOG_SCHEME):
            store = open_dedup(settings.dedup)
    except StoreUnavailable:
        if not problems:
            buses.close()
            raise
    except TerminalDedupError as problem:
        problems.append(f"{named('dedup')}: {problem}")
    if not problems and store is not None:
        return OnBus(settings, buses, found, store)
    if store is not None:
        store.close()
    buses.close()
    return None


def _bus(buses: Buses, settings: Settings, name: str, problems: list[str]) -> Iterator[Bus]:
    url = getattr(settings, name)
    if url.startswith((LOG_SCHEME, "webhook+")):  # told of already
        return
    try:
        yield buses.at(url)
    except (BadBusUrl, BusClientMissing) as problem:
        problems.append(f"{named(name)}: {problem}")


def _alone(settings: Settings, found: Mapping[str, Bus], given: Mapping[str, MakeBus]) -> Iterator[str]:
    """What lives in one process while others could be there, or nobody could."""
    for name, bus in found.items():
        scheme = getattr(settings, name).partition("://")[0]
        if not bus.shared and scheme not in given:
            yield f"{named(name)}: a {scheme}:// bus ends with its process, and nobody else could reach it; name a bus that others can reach"
    if settings.dedup.startswith("memory:") and any(bus.shared for bus in found.values()):
        yield (
            f"{named('dedup')}: {settings.dedup} is for one process alone, and a second replica on this bus would carry every intent out again; "
            "give sqlite:///file.db on one machine, or postgresql://… or redis://…"
        )
