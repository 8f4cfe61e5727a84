"""A chain of digests over a stream: each event's is made from the one before and everything that stands in its columns.

Whoever keeps the file of a chain elsewhere can tell later whether anything that had been recorded by then was changed,
taken away or put in between, and which event is the first. Positions are left out, so that a restored log, a copy and a
bundle have the chain of the original. The digest at a stream's end is whole; of each event before it four bytes are
kept, which is enough to find the place. Rows that no reader of streams sees have a chain of their own, under no name, when
there are any.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import attrs

from ..eventlog.events import StoredEvent
from ..eventlog.inspecting import unseen_in
from ..eventlog.log import EventLog
from ..eventlog.odd import NotText
from .errors import BrokenChain

_FORMAT: Final = 1
_MARK: Final = 4
#: The name of the chain of those rows that belong to no stream for its readers.
UNSEEN: Final = ""


@attrs.frozen
class Chain:
    """The chain of one stream up to ``version``."""

    stream: str
    version: int
    digest: bytes
    #: Four bytes an event.
    marks: bytes = attrs.field(repr=False)


def chain_of(log: EventLog, stream: str, *, upto: int | None = None) -> Chain:
    """The chain over a stream's events; ``version`` is -1 for a stream without any."""
    digest = hashlib.sha256(f"intentlog chain {_FORMAT}\n{stream}".encode("utf-8", "surrogatepass")).digest()
    marks, last = bytearray(), -1
    for stored in log.read(stream, upto=upto):
        digest = hashlib.sha256(digest + _framed(stored)).digest()
        marks += digest[:_MARK]
        last += 1
    return Chain(stream, last, digest, bytes(marks))


def chain_of_unseen(log: EventLog, streams: Collection[str] = ()) -> Chain:
    """The chain over the rows that no reader of streams sees, of ``streams`` or of the whole log; ``version`` is -1 when there are none."""
    digest = hashlib.sha256(f"intentlog chain {_FORMAT} unseen\n".encode()).digest()
    marks, last = bytearray(), -1
    for stored in unseen_in(log):
        if streams and stored.stream not in streams:
            continue
        digest = hashlib.sha256(digest + _lengthened(stored.stream) + _framed(stored)).digest()
        marks += digest[:_MARK]
        last += 1
    return Chain(UNSEEN, last, digest, bytes(marks))


def _framed(stored: StoredEvent) -> bytes:
    """The event's columns, each with its kind and length in front, so that no two events look the same."""
    columns = (stored.version, stored.event_id, stored.type, stored.schema, stored.data, stored.recorded_at, stored.correlation, stored.causation)
    return b"".join(map(_lengthened, columns))


def _lengthened(value: Any) -> bytes:
    kind, written = _written(value)
    return kind + b"%d:" % len(written) + written


def _written(value: Any) -> tuple[bytes, bytes]:
    if value is None:
        return b"n", b""
    if isinstance(value, bytes):
        return b"b", value
    if isinstance(value, str):
        return b"s", value.encode("utf-8", "surrogatepass")
    if isinstance(value, NotText):
        return b"t", value.raw
    return (b"i", b"%d" % value) if type(value) is int else (b"o", repr(value).encode())  # a hand's doing


def differs_at(sealed: Chain, found: Chain) -> int | None:
    """Version of the first event that is not what it was; ``None`` when the chain is the same as far as it was sealed."""
    if found.version >= sealed.version and found.digest == sealed.digest:
        return None
    for at in range(min(len(sealed.marks), len(found.marks)) // _MARK):
        place = slice(at * _MARK, (at + 1) * _MARK)
        if sealed.marks[place] != found.marks[place]:
            return at
    return found.version + 1


def total_of(chains: Iterable[Chain]) -> bytes:
    """One digest over many chains, in the order of their streams' names."""
    total = hashlib.sha256()
    for each in sorted(chains, key=lambda each: each.stream):
        total.update(hashlib.sha256(each.stream.encode("utf-8", "surrogatepass")).digest() + b"%d:" % each.version + each.digest)
    return total.digest()


def written_lines(chains: Iterable[Chain]) -> Iterator[str]:
    """The lines of a chain's file."""
    kept = []
    yield json.dumps({"chain": _FORMAT})
    for each in chains:
        kept.append(attrs.evolve(each, marks=b""))
        yield json.dumps({"stream": each.stream, "version": each.version, "digest": each.digest.hex(), "marks": base64.b64encode(each.marks).decode()})
    yield json.dumps({"streams": len(kept), "total": total_of(kept).hex()})


def read_lines(lines: Iterable[str], name: str = "the chain's file") -> Iterator[Chain]:
    """The chains of a file, one at a time. Raises ``BrokenChain`` for what is none, or is not whole, when it comes to that."""
    kept = []
    end: dict[str, Any] | None = None
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
            if number == 1:
                if said["chain"] != _FORMAT:
                    raise BrokenChain(f"{name} is of format {said['chain']!r}, and this release reads format {_FORMAT}")
            elif "total" in said:
                end = said
            else:
                chain = Chain(said["stream"], said["version"], bytes.fromhex(said["digest"]), base64.b64decode(said["marks"], validate=True))
                if len(chain.marks) != _MARK * (chain.version + 1):
                    raise ValueError("it has not a mark for each event")
                kept.append(attrs.evolve(chain, marks=b""))
                yield chain
        except (ValueError, KeyError, TypeError, binascii.Error) as problem:
            raise BrokenChain(f"{name}, line {number}, is no line of a chain: {problem}. Give a file that eventlog verify --chain-out wrote.") from problem
    if end is None or end["streams"] != len(kept) or end["total"] != total_of(kept).hex():
        raise BrokenChain(f"{name} is not whole: its last line does not fit those before it. Take another copy.")
