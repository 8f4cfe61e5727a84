"""An event as it lies in the log, and every stage on its way to an object: bytes, tree, upcasts, class (S-8.3).

Nothing here fails on an event that cannot be read; it says at which stage reading ends, and why. Works without an app,
and when the class is gone.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.events import StoredEvent
from ..eventlog.odd import NotText, odd_columns, shown
from ..eventlog.printing import cut, iso, one_line, plain, styled
from ..eventlog.upcasting import upcast

_LINE: Final = 16
MOST_SHOWN: Final = 512
"""Bytes of an event that are printed unless all are asked for."""


@attrs.frozen
class Stage:
    """One stage: what the event is then, or why it does not get there."""

    name: str
    content: Any = None
    problem: str = ""


@attrs.frozen
class Raw:
    """One event and how far it can be read."""

    stored: StoredEvent
    stages: tuple[Stage, ...]

    @property
    def problem(self) -> str:
        """Why it cannot be read; empty when it can."""
        return self.stages[-1].problem

    @property
    def unknown(self) -> bool:
        """Whether all that is missing is the class."""
        return self.stages[-1].name == "class" and bool(self.problem)

    def as_tree(self) -> dict[str, Any]:
        """As ``--json`` prints it: the bytes in full."""
        stored = self.stored
        return {
            "stream": stored.stream,
            "version": plain(stored.version),
            "position": plain(stored.position),
            "time": iso(stored.recorded_at) if isinstance(stored.recorded_at, int) else plain(stored.recorded_at),
            "type": plain(stored.type),
            "schema": plain(stored.schema),
            "event_id": _hex(stored.event_id),
            "correlation": _hex(stored.correlation),
            "causation": _hex(stored.causation),
            "bytes": plain(stored.data),
            "stages": [{"stage": each.name, "content": plain(each.content), "problem": each.problem} for each in self.stages],
            "problem": self.problem,
        }


def raw_event(stored: StoredEvent, codec: Codec) -> Raw:
    """``stored`` with every stage of its reading, the last of which says what went wrong, if anything did."""
    return Raw(stored, tuple(_stages(stored, codec)))


def _stages(stored: StoredEvent, codec: Codec) -> Iterator[Stage]:
    if odd := "; ".join(odd_columns(stored)):
        yield Stage("columns", problem=odd)
        return
    try:
        tree = codec.tree(stored.data)
    except Undecodable as problem:
        yield Stage("tree", problem=str(problem))
        return
    yield Stage("tree", copy.deepcopy(tree))
    entry = codec.registry.get(stored.type)
    if entry is None:
        yield Stage("class", problem=f"no class is registered under {stored.type!r}")
        return
    for step in entry.steps[max(stored.schema, 1) - 1 :]:
        name = f"upcast {step.from_version} → {step.from_version + 1} by {step.name}"
        try:
            tree = upcast(tree, (step,))
        except Exception as problem:  # whatever an upcaster does is what there is to show
            yield Stage(name, problem=str(problem))
            return
        yield Stage(name, copy.deepcopy(tree))
    name = f"{entry.cls.__module__}.{entry.cls.__qualname__} (schema {entry.version})"
    try:
        event = codec.decode(stored.type, stored.schema, stored.data)
    except LogError as problem:
        yield Stage(name, problem=str(problem))
        return
    yield Stage(name, {field.name: getattr(event, field.name) for field in attrs.fields(type(event))})


def raw_lines(raw: Raw, *, width: int, whole: bool = False) -> Iterator[str]:
    """One event in full, for a terminal of ``width`` columns."""
    stored = raw.stored
    data, kind = as_bytes(stored.data)
    yield styled(f"{one_line(stored.stream)} version {one_line(cell(stored.version))}", bold=True)
    for label, value in (
        ("type", f"{one_line(cell(stored.type))}, schema {one_line(cell(stored.schema))}"),
        ("position", stored.position),
        ("recorded", iso(stored.recorded_at) if isinstance(stored.recorded_at, int) else one_line(cell(stored.recorded_at))),
        ("event id", _hex(stored.event_id)),
        ("caused by", _hex(stored.causation) or "–"),
        ("bytes", f"{len(data):,}{kind and ', ' + kind}, SHA-256 {hashlib.sha256(data).hexdigest()[:16]}…"),
    ):
        yield f"  {label:<10} {value}"
    front = data if whole else data[:MOST_SHOWN]
    yield from (f"    {line}" for line in _dump(front))
    if len(front) < len(data):
        yield f"    … and {len(data) - len(front):,} more bytes; --whole prints them"
    for stage in raw.stages:
        yield styled(f"  {one_line(stage.name)}", bold=True)
        if stage.problem:
            yield f"    {styled('cannot be read', fg='red', bold=True)}: {one_line(stage.problem)}"
        elif isinstance(stage.content, dict):
            names = min(max((len(one_line(name)) for name in stage.content), default=0), 30)
            for name, value in stage.content.items():
                yield cut(f"    {one_line(name):<{names}}  {one_line(value, 4 * width)}", width)
        else:
            yield cut(f"    {one_line(stage.content, 4 * width)}", width)


def as_bytes(value: object) -> tuple[bytes, str]:
    """What a column holds, byte by byte, and what it is there instead of a blob; empty for a blob."""
    if isinstance(value, bytes):
        return value, ""
    if isinstance(value, NotText):
        return value.raw, "as text that is not UTF-8"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass"), "as text"
    return (b"", "NULL") if value is None else (repr(value).encode(), "an integer" if type(value) is int else "a number")


def _dump(data: bytes) -> Iterator[str]:
    for begin in range(0, len(data), _LINE):
        line = data[begin : begin + _LINE]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        yield f"{begin:06x}  {line.hex(' '):<{3 * _LINE - 1}}  {text}"


def _hex(value: object) -> Any:
    return value.hex() if isinstance(value, bytes) else shown(value) if isinstance(value, NotText) else plain(value)


def cell(value: object) -> str:
    """A column's value: text and numbers as they are, anything else so that its kind shows."""
    return str(value) if isinstance(value, str | int) else shown(value)
