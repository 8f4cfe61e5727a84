"""A folded state and an event as trees whose parts are made when they are looked at, for what asks about one part a thousand times.

They read like ``state_as_tree`` and like an event's fields, and show the state as it is at that moment: what is to be kept
while the fold goes on is made whole first (``whole``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from ..agents import facts
from ..agents.streams import StreamState
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError
from ..eventlog.events import Row
from ..eventlog.printing import iso
from .fold import activation_as_tree, intent_as_tree
from .paths import field_names


class _Parts(Mapping[str, Any]):
    """A mapping whose values are made when they are asked for."""

    def __init__(self, parts: Mapping[str, Callable[[], Any]]) -> None:
        self._parts = parts

    def __getitem__(self, key: str) -> Any:
        return self._parts[key]()

    def __contains__(self, key: object) -> bool:
        return key in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class _Each(Mapping[str, Any]):
    """A mapping of things of one kind, each made into a tree when it is asked for."""

    def __init__(self, held: Mapping[Any, Any], made: Callable[[Any], Any], key: Callable[[str], Any] = str) -> None:
        self._held, self._made, self._key = held, made, key

    def __getitem__(self, key: str) -> Any:
        try:
            return self._made(self._held[self._key(key)])
        except ValueError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        try:
            return isinstance(key, str) and self._key(key) in self._held
        except ValueError:
            return False

    def __iter__(self) -> Iterator[str]:
        return map(str, self._held)

    def __len__(self) -> int:
        return len(self._held)


def tree_of(folded: StreamState) -> Mapping[str, Any]:
    """``state_as_tree`` in parts."""
    run = folded.run
    inside: dict[str, Callable[[], Any]] = {
        "inputs": lambda: run.inputs,
        "completed": lambda: run.completed,
        "line": lambda: list(run.line),
        "activations": lambda: _Each(run.open, activation_as_tree, int),
        "intents": lambda: _Each(run.intents, intent_as_tree),
        "late": lambda: list(run.late),
        "spent": lambda: {"tokens": run.spent.tokens, "cost": run.spent.cost},
        "blocked": lambda: run.blocked,
    }
    return _Parts({"stream": lambda: folded.stream, "version": lambda: folded.version, "state": lambda: folded.state, "run": lambda: _Parts(inside)})


def whole(value: Any) -> Any:
    """``value`` with every part made, so that it stays as it is."""
    return {key: whole(each) for key, each in value.items()} if isinstance(value, _Parts | _Each) else value


RUN: Final = frozenset({"inputs", "completed", "line", "activations", "intents", "late", "spent", "blocked"})
"""What there is under ``run``."""
_OWN: Final = ("type", "version", "schema", "time", "fields")


class EventTree(Mapping[str, Any]):
    """An event as expressions see it: ``type``, ``version``, ``schema``, ``time`` (ISO 8601), and beside them its fields.

    A field that is called like one of those stands under ``fields``. An input's payload is shown as its values. What
    cannot be decoded has no fields.
    """

    def __init__(self, row: Row, codec: Codec) -> None:
        self._row, self._codec = row, codec
        self._fields: Mapping[str, Any] | None = None

    def __getitem__(self, key: str) -> Any:
        if key not in _OWN:
            return self._decoded()[key]
        if key == "fields":
            return self._decoded()
        version, kind, schema, _, _, recorded_at = self._row
        return {"type": kind, "version": version, "schema": schema, "time": iso(recorded_at)}[key]

    def __iter__(self) -> Iterator[str]:
        yield from _OWN
        yield from (name for name in self._decoded() if name not in _OWN)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _decoded(self) -> Mapping[str, Any]:
        if self._fields is None:
            self._fields = fields_of_row(self._row, self._codec)
        return self._fields


def fields_of_row(row: Row, codec: Codec) -> Mapping[str, Any]:
    """The fields of an event by name; of one without a class, or that does not fit it, what its bytes hold; else nothing."""
    try:
        event = codec.decode(row[1], row[2], row[3])
        fields = {name: getattr(event, name) for name in field_names(type(event))}
        if type(event) is facts.InputReceived:
            fields["payload"] = payload_of(event, codec)
        return fields
    except LogError:
        try:
            tree = codec.tree(row[3])
        except LogError:
            return {}
        return tree if isinstance(tree, dict) else {}


def payload_of(received: facts.InputReceived, codec: Codec) -> Any:
    """An input's payload as plain values, or its bytes when they cannot be read."""
    try:
        return msgspec.json.decode(received.payload) if received.format == "json" else codec.tree(received.payload)
    except (LogError, msgspec.MsgspecError):
        return received.payload
