"""Events of the runtime that this code cannot read, as something to be listed beside what it can: one of them hides nothing but itself.

An event is unreadable when its bytes are damaged or were written under a newer schema (S-8.3). What it would have said is not known,
so whoever decides on what a stream says must not pass it over; whoever only shows what there is tells of it, and goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias

import attrs

from ..eventlog.clock import Micros
from ..eventlog.codec import Codec
from ..eventlog.errors import Undecodable
from ..eventlog.events import StoredEvent

UNREADABLE: Final = "UNREADABLE"
"""How it stands in a list of intents."""


@attrs.frozen
class Unreadable:
    """One event that cannot be read, and why."""

    stream: str
    version: int
    position: int
    #: The type that it has by its row.
    type: str
    recorded_at: Micros
    #: Without the place; names the type.
    why: str

    @property
    def looked_at(self) -> str:
        """The command that shows its bytes and where reading them ends."""
        return f"eventlog raw {self.stream} {self.version}"


Tell: TypeAlias = "Callable[[Unreadable], None]"
"""Hears of each event that cannot be read."""


def facts_of(codec: Codec, events: Iterable[StoredEvent], types: Collection[str], tell: Tell | None = None) -> Iterator[tuple[StoredEvent, Any]]:
    """Those of ``events`` that have one of ``types``, and what they say. One that cannot be read is told of; without ``tell`` it is raised."""
    for event in events:
        if event.type not in types:
            continue
        try:
            fact = codec.decode_stored(event)
        except Undecodable as problem:
            if tell is None:
                raise
            tell(unreadable(event, problem))
        else:
            yield event, fact


def unreadable(event: StoredEvent, why: Undecodable) -> Unreadable:
    """``event``, which cannot be read because of ``why``."""
    text = str(why).removeprefix(f"{event.stream} version {event.version}: ")  # the place has fields of its own
    return Unreadable(event.stream, event.version, event.position, event.type, event.recorded_at, text)


def once(tell: Tell) -> Tell:
    """``tell``, who hears of no event a second time."""
    heard: set[tuple[str, int]] = set()

    def told(event: Unreadable) -> None:
        if (event.stream, event.version) not in heard:
            heard.add((event.stream, event.version))
            tell(event)

    return told


def unheard(_: Unreadable) -> None:
    """For whoever looks for something else, and says so when it is not found."""
