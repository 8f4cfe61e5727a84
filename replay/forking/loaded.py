"""The streams of aggregates that a fork's turns had loaded: wherever a fork is put, whoever runs it again reads them.

They are copied as they stand in the source's log. A fork writes to none of them: what its own turns emit to one is told in the
fork, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...agents.intents import content_digest
from ...eventlog.codec import Codec
from ...eventlog.errors import Undecodable
from ...eventlog.events import StoredEvent
from ...eventlog.log import EventLog
from ...eventlog.masking import masked_url
from ..errors import ForkRefused, MergeRefused
from .pieces import INVENTED, Piece

Histories = Mapping[str, Sequence[StoredEvent]]


def loaded_by(log: EventLog, codec: Codec, pieces: Iterable[Piece]) -> dict[str, Sequence[StoredEvent]]:
    """The streams that ``pieces`` tell of having loaded, whole, with their events in ``log``."""
    names: dict[str, None] = {}
    for piece in pieces:
        if piece.type == "aggregate.loaded":
            try:
                names[codec.decode(piece.type, piece.schema, piece.data).stream] = None
            except Undecodable:
                continue  # the fork has it as it is; verify and raw tell of it
    found = {name: list(log.read(name)) for name in names}
    return {name: events for name, events in found.items() if events}


def placed(histories: Histories) -> dict[str, list[StoredEvent]]:
    """``histories`` in one order, by the moments they were recorded at: positions are those of a log of their own."""
    order: list[tuple[int, int, int, StoredEvent]] = []
    for number, events in enumerate(histories.values()):
        moment = 0
        for event in events:
            moment = max(moment, event.recorded_at)  # a clock that was put back does not change a stream's own order
            order.append((moment, number, event.version, event))
    result: dict[str, list[StoredEvent]] = {name: [] for name in histories}
    for position, (_, _, _, event) in enumerate(sorted(order, key=lambda each: each[:3]), 1):
        result[event.stream].append(event._replace(position=position))
    return result


def missing_in(log: EventLog, loaded: Histories) -> dict[str, Sequence[StoredEvent]]:
    """Of ``loaded``, what ``log`` does not have. Raises ``ForkRefused`` where a stream of that name there is another one."""
    missing = {}
    for name, events in loaded.items():
        there = [event.event_id for event in log.read(name, upto=events[-1].version, payloads=False)]
        if not there:
            missing[name] = events
        elif there != [event.event_id for event in events]:
            raise ForkRefused(
                f"{masked_url(log.url)} has a stream {name} that is another one than the one which these turns had loaded. "
                "Write the fork to another log, or to a bundle."
            )
    return missing


def check_emits_nothing(codec: Codec, pieces: Sequence[Piece]) -> None:
    """Raise ``ForkRefused`` where a turn that was decided anew emits to an aggregate: nobody would append that there."""
    for version, piece in enumerate(pieces):
        if piece.type == "aggregate.saved" and piece.origin == INVENTED:
            other = codec.decode(piece.type, piece.schema, piece.data).stream
            raise ForkRefused(
                f"At version {version} a turn of this fork, decided anew, emits to {other}, to which a fork writes nothing. "
                "Look at it as a copy, without --live; or fork behind the turn that emitted it on the source (--at)."
            )


def check_emitted(log: EventLog, codec: Codec, pieces: Iterable[Piece]) -> None:
    """Raise ``MergeRefused`` where ``pieces`` tell of events for an aggregate that do not stand in its stream in ``log``."""
    for piece in pieces:
        if piece.type == "aggregate.saved":
            saved = codec.decode(piece.type, piece.schema, piece.data)
            there = log.read(saved.stream, after=saved.version - 1, upto=saved.version + len(saved.types) - 1)
            events = [[event.type, event.schema, event.data] for event in there]
            if content_digest(saved.stream, codec.encode_value(events, list[Any])) != saved.digest:
                raise MergeRefused(
                    f"A turn of the fork emitted {', '.join(saved.types)} to {saved.stream} as version {saved.version}, and that does not stand there in the "
                    "source's log: a merge brings the events of one stream. Let the source decide that turn itself."
                )
