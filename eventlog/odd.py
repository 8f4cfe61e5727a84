"""What no append writes: values that a hand put into the columns of a log, and how they are told of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from .clock import SECOND
from .events import StoredEvent

_FIRST: Final = -62_135_596_800 * SECOND
_LAST: Final = 253_402_300_800 * SECOND
_ID: Final = 16
_MOST_SHOWN: Final = 16
KINDS: Final[dict[type, str]] = {int: "an integer", str: "text", bytes: "a blob"}
"""What belongs into a column, in words."""


@attrs.frozen(repr=False)
class NotText:
    """What stands in a column as text and is none in UTF-8: SQLite keeps whatever bytes it is given."""

    raw: bytes

    def __repr__(self) -> str:
        more = "…" if len(self.raw) > _MOST_SHOWN else ""
        return f"text that is not UTF-8 (x'{self.raw[:_MOST_SHOWN].hex()}{more}')"


def as_text(raw: bytes) -> str | NotText:
    """Text as a column holds it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return NotText(raw)


@attrs.frozen
class OddCell:
    """A cell of a log's tables that holds what no append writes."""

    table: str
    #: The row in words, for example ``orders-bob version 1, position 12``.
    row: str
    column: str
    #: The whole of it in words, with the way out.
    text: str


def odd_cells(stored: StoredEvent, whose: str, way_out: str, where: str = "") -> Iterator[OddCell]:
    """``odd_columns`` as cells. ``whose`` begins the text, ``way_out`` is what to do; ``where`` is the option that names what is no log."""
    stream = f"{stored.stream!s:.200}"
    row = f"{stream} version {stored.version!s:.40} at position {stored.position}"
    for said in odd_columns(stored):
        text = f"{whose}{row}: {said}. {way_out} What can be read of it: eventlog raw {stream}{where}"
        yield OddCell("events", row, said.partition(" ")[0], text)


def odd_columns(stored: StoredEvent) -> Iterator[str]:
    """What no append can have put into an event's columns, in words."""
    for column, value, kind in (
        ("version", stored.version, int),
        ("type", stored.type, str),
        ("schema", stored.schema, int),
        ("recorded_at", stored.recorded_at, int),
        ("data", stored.data, bytes),
    ):
        if type(value) is not kind:
            yield f"{column} is {shown(value)}, where {KINDS[kind]} belongs"
    if type(stored.recorded_at) is int and not _FIRST <= stored.recorded_at < _LAST:
        yield f"recorded_at is {stored.recorded_at}, a moment outside of the years 1 to 9999 (it is microseconds since 1970)"
    for column, identity in (("event_id", stored.event_id), ("correlation", stored.correlation), ("causation", stored.causation)):
        if identity is None and column != "event_id":
            continue
        if type(identity) is not bytes or len(identity) != _ID:
            yield f"{column} is {shown(identity)}, where {_ID} bytes belong"


def shown(value: object) -> str:
    """A value of a wrong type, short.

    >>> shown(5), shown(None), shown("five"), shown(b"five!"), shown(NotText(bytes([255])))
    ('5', 'NULL', "'five'", "b'five!'", "text that is not UTF-8 (x'ff')")
    """
    if value is None:
        return "NULL"
    return f"{(value[:80] if isinstance(value, str | bytes) else value)!r:.80}"
