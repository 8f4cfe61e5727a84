"""The events of a small program that has been changed twice: its old bytes are in the corpus, and so are its upcasters."""

from __future__ import annotations

from typing import Any

from intentlog.eventlog.registry import event
from intentlog.eventlog.upcasting import upcasts


@event("parcel.weighed", version=3)
class Weighed:
    """Version 1 was ``kilos: float``; version 2 ``grams: int``; since version 3 it says on which scale."""

    grams: int
    scale: str


@upcasts("parcel.weighed", from_version=1)
def in_grams(fields: dict[str, Any]) -> dict[str, Any]:
    """2.5 kg are 2500 g."""
    return {"grams": round(fields["kilos"] * 1000)}


@upcasts("parcel.weighed", from_version=2)
def with_a_scale(fields: dict[str, Any]) -> dict[str, Any]:
    """Nobody wrote down which scale it was."""
    return {**fields, "scale": "unknown"}


def as_it_was(version: int) -> Any:
    """An instance of the class as it was at ``version``."""
    if version == 1:

        @event("parcel.weighed", version=1)
        class First:
            kilos: float

        return First(2.5)

    @event("parcel.weighed", version=2)
    class Second:
        grams: int

    return Second(2500)


EVENTS = (Weighed,)
UPCASTERS = (in_grams, with_a_scale)
