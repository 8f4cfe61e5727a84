"""Whether what was acknowledged, what is in the log and what its tails were shown fit together. Every function gives faults, none when all is well."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import attrs


class Entry(NamedTuple):
    """An event as far as order and identity go."""

    position: int
    stream: str
    version: int
    id: str


@attrs.frozen
class Ack:
    """One call of a writer that came back: what it was told, in the order of the events it had sent."""

    writer: int
    entries: tuple[Entry, ...]
    #: Ids of events that were refused by the same call.
    refused: tuple[str, ...] = ()
    #: The call repeated an earlier one.
    again: bool = False


@attrs.frozen
class Life:
    """A tail from its start to its end: the checkpoint it began behind, and what it was shown."""

    after: int
    shown: Sequence[Entry]


def history_faults(order: Sequence[Entry], acks: Iterable[Ack]) -> Iterator[str]:
    """``order`` is the whole log; ``acks`` come writer by writer, each in the order of its calls. No writer failed or was killed."""
    for before, after in pairwise(order):
        if before.position >= after.position:
            yield f"{before} stands before {after}"
    acked: set[str] = set()
    there = {entry.id: entry for entry in order}
    if len(there) < len(order):
        yield f"there more than once: {[entry for entry, times in Counter(entry.id for entry in order).items() if times > 1][:5]}"
    last: dict[int, int] = {}
    for ack in acks:
        for entry in ack.entries:
            if there.get(entry.id) != entry:
                yield f"acknowledged {entry}, the log has {there.get(entry.id)}"
        for refused in ack.refused:
            if refused in there:
                yield f"refused, and there all the same: {there[refused]}"
        if not ack.again and ack.entries:
            if min(ack.entries).position <= last.get(ack.writer, 0):
                yield f"writer {ack.writer} was told of {last[ack.writer]} before it began {min(ack.entries)}"
            last[ack.writer] = max(ack.entries).position
        acked |= {entry.id for entry in ack.entries}
    if strangers := set(there) - acked:
        yield f"{len(strangers)} events nobody was told of, such as {there[min(strangers)]}"
    yield from stream_faults(order)


def stream_faults(order: Sequence[Entry]) -> Iterator[str]:
    """Along every stream versions go up one by one, in the order of the log."""
    streams: dict[str, list[int]] = defaultdict(list)
    for entry in order:
        streams[entry.stream].append(entry.version)
    for stream, versions in streams.items():
        if versions != list(range(len(versions))):
            yield f"versions of {stream} in the log's order: {versions[:50]}"


def tail_faults(name: str, lives: Sequence[Life], order: Sequence[Entry]) -> Iterator[str]:
    """Every life of a tail is shown the log from its checkpoint on, without a gap; the last one up to its end."""
    reached = 0
    for number, life in enumerate(lives, 1):
        behind = [entry for entry in order if entry.position > life.after]
        wanted = behind[: len(life.shown)] if number < len(lives) else behind
        if life.after > reached:
            yield f"{name}, life {number}: begins behind {life.after}, but was shown no more than {reached}"
        if list(life.shown) != wanted:
            pairs = zip(life.shown, wanted, strict=False)
            place = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(life.shown), len(wanted)))
            shown, missed = life.shown[place : place + 2], wanted[place : place + 2]
            yield f"{name}, life {number}: {len(life.shown)} shown of {len(wanted)}; at {place}: {shown}, not {missed}"
        reached = max([reached, *(entry.position for entry in life.shown)])


def checkpoint_faults(samples: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """Checkpoints, looked at again and again, only grow."""
    for before, after in pairwise(samples):
        for name, position in before.items():
            if after.get(name, 0) < position:
                yield f"checkpoint {name} went from {position} to {after.get(name)}"
