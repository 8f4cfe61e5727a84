"""From events to bytes and back. What would not come back exactly is refused when it is encoded (S-8.4).

A codec is made from a registry and is thread-safe. Bytes are canonical: equal values give equal bytes. Reading has two
paths: where msgspec can fill the class by itself it does; everything else, and whatever it stumbles over, goes the
general way, which decides and reports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

import msgspec

from . import wire
from ._shapes import Encode, Refused, Shape, label_of
from .errors import NewerSchema, RegistrationError, Undecodable, Unencodable, UnknownEventType
from .events import NewEvent, StoredEvent
from .registry import EventRegistry, event_name
from .upcasting import Step, upcast

preencoded = msgspec.Raw
"""Canonical bytes from ``encode_value``, standing for the value in an event given to ``stage_checked``."""

T = TypeVar("T")
Reader: TypeAlias = Callable[[bytes], Any]


class Codec:
    """Encodes and decodes the events of one registry, and values of any supported type."""

    def __init__(self, registry: EventRegistry) -> None:
        """Freeze ``registry``; raises ``RegistrationError`` when a chain of upcasters has a gap."""
        self.registry = registry.freeze()
        self._writers: dict[type, tuple[str, int, Encode]] = {entry.cls: (entry.name, entry.version, entry.shape.encoder("")) for entry in registry}
        self._readers: dict[tuple[str, int], Reader] = {}
        self._value_writers: dict[Any, Encode] = {}
        self._value_readers: dict[Any, Reader] = {}

    def encode(self, event: object) -> tuple[str, int, bytes]:
        """``(type, schema, bytes)``. Raises ``Unencodable`` with the path of the first field that would not come back exactly."""
        writer = self._writers.get(type(event))
        if writer is None:
            raise self._stranger(event)
        name, version, hook = writer
        try:
            return name, version, wire.write(hook(event))
        except Refused as fault:
            raise _unencodable(name, fault) from fault
        except (RecursionError, OverflowError, MemoryError) as fault:
            raise _too_big(name, fault) from fault

    def stage(self, event: object, *, event_id: bytes, correlation: bytes | None = None, causation: bytes | None = None) -> NewEvent:
        """Encode ``event`` for an append under ``event_id`` (16 bytes)."""
        name, version, blob = self.encode(event)
        return NewEvent(event_id, name, version, blob, correlation, causation)

    def stage_checked(
        self, event: object, event_id: bytes, correlation: bytes | None = None, causation: bytes | None = None, plain: Callable[[], object] | None = None
    ) -> tuple[NewEvent, Any]:
        """``stage`` for the runtime's own facts, with the event as it will be read back.

        The bytes are the same, but made by msgspec alone and checked by reading them back instead of field by field
        beforehand; whatever does not pass goes the strict way. A field may hold ``preencoded`` bytes; then ``plain()``
        is the same event without them, for the strict way. For classes whose values nobody else provides.
        """
        writer = self._writers.get(type(event))
        if writer is None:
            raise self._stranger(event)
        name, version, _ = writer
        try:
            blob = wire.write(event)
            read = (self._readers.get((name, version)) or self.decoder(name, version))(blob)
        except (Undecodable, UnicodeError, OverflowError, TypeError, RecursionError):
            _, _, blob = self.encode(event if plain is None else plain())
            read = self.decode(name, version, blob)
        return NewEvent(event_id, name, version, blob, correlation, causation), read

    def decode(self, type: str, schema: int, data: bytes) -> Any:
        """The event behind stored bytes, upcast to its class of today.

        Raises ``UnknownEventType``, ``NewerSchema`` (S-8.3), or ``Undecodable`` with the path of the field at fault.
        """
        return (self._readers.get((type, schema)) or self.decoder(type, schema))(data)

    def decode_stored(self, stored: StoredEvent) -> Any:
        """The event of a stored one; errors name its stream and version."""
        try:
            return self.decode(stored.type, stored.schema, stored.data)
        except Undecodable as fault:
            raise fault.at(stored.stream, stored.version) from fault

    def decoder(self, type: str, schema: int) -> Reader:
        """A function from bytes to the event, for folds: resolved once, kept, and free of look-ups afterwards."""
        reader = self._readers.get((type, schema))
        if reader is None:
            reader = self._readers[type, schema] = self._make_reader(type, schema)
        return reader

    def tree(self, data: bytes) -> Any:
        """Stored bytes as plain values, without any class; raises ``Undecodable`` when they are no MessagePack."""
        try:
            return wire.read(data)
        except Refused as fault:
            raise Undecodable(f"{fault.reason}. Were the bytes damaged, or written by another program?") from fault

    def encode_value(self, value: object, kind: Any) -> bytes:
        """Canonical bytes of a value of any supported type. Raises ``Unencodable``, or ``RegistrationError`` for the type."""
        hook = self._value_writers.get(kind)
        if hook is None:
            hook = self._value_writers[kind] = self._shape(kind).encoder("")
        try:
            return wire.write(hook(value))
        except Refused as fault:
            raise _unencodable(label_of(kind), fault) from fault
        except (RecursionError, OverflowError, MemoryError) as fault:
            raise _too_big(label_of(kind), fault) from fault

    @overload
    def decode_value(self, data: bytes, kind: type[T]) -> T: ...
    @overload
    def decode_value(self, data: bytes, kind: Any) -> Any: ...
    def decode_value(self, data: bytes, kind: Any) -> Any:
        """The value behind bytes of ``encode_value``. Raises ``Undecodable``, or ``RegistrationError`` for the type."""
        reader = self._value_readers.get(kind)
        if reader is None:
            reader = self._value_readers[kind] = _quick(kind, self._shape(kind), _general(label_of(kind), self._shape(kind), ()))
        return reader(data)

    def check_type(self, kind: Any) -> None:
        """Raise ``RegistrationError`` naming the field unless values of ``kind`` can be encoded."""
        self._shape(kind)

    def knows(self, cls: type) -> bool:
        """Whether events of this very class can be encoded."""
        return cls in self._writers

    def class_of(self, type: str) -> type:
        """The class of today behind an event type name; raises ``UnknownEventType``."""
        entry = self.registry.get(type)
        if entry is None:
            raise self._unknown(type)
        return entry.cls

    def _unknown(self, type: str) -> UnknownEventType:
        known = ", ".join(sorted(each.name for each in self.registry)) or "none"
        return UnknownEventType(f"No class is registered for the event type {type!r} (known: {known}). Register its class, or read it raw with tree().")

    def _shape(self, kind: Any) -> Shape:
        try:
            return self.registry.shapes.of(kind)
        except Refused as fault:
            raise RegistrationError(f"{label_of(kind)}{fault.path}: {fault.reason}.") from fault

    def _make_reader(self, type: str, schema: int) -> Reader:
        entry = self.registry.get(type)
        if entry is None:
            raise self._unknown(type)
        if not isinstance(schema, int):
            raise Undecodable(f"{type} has schema version {schema!r:.80}, which is no number. Was the log edited by hand?")
        if schema > entry.version:
            raise NewerSchema(f"{type} was written under schema version {schema}, but this code knows it up to {entry.version}. Deploy the newer code first.")
        if schema < 1:
            raise Undecodable(f"{type} has schema version {schema!r}; versions begin with 1.")
        general = _general(f"{type} (schema {schema})", entry.shape, entry.steps[schema - 1 :])
        return _quick(entry.cls, entry.shape, general) if schema == entry.version else general

    def _stranger(self, event: object) -> RegistrationError:
        kind = type(event)
        place = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(event, type):
            return RegistrationError(f"{event!r} is a class; an event is an instance of one.")
        name, _ = event_name(kind)
        held = self.registry.get(name)
        if held is not None:
            return RegistrationError(f"{place} is not the class registered as {name!r} (was it reloaded?); make a new registry from today's classes.")
        return RegistrationError(f"{place} ({name!r}) is not registered; add it: EventRegistry(..., {kind.__name__}).")


def _general(name: str, shape: Shape, steps: tuple[Step, ...]) -> Reader:
    decode = shape.decode

    def read(data: bytes) -> Any:
        try:
            tree = wire.read(data)
            return decode(upcast(tree, steps) if steps else tree)
        except Refused as fault:
            raise Undecodable(f"{name}{fault.path}: {fault.reason}.") from fault
        except RecursionError as fault:
            raise Undecodable(f"{name}: nested too deep to be read here.") from fault

    return read


def _quick(kind: Any, shape: Shape, general: Reader) -> Reader:
    """msgspec straight onto the class, where that gives the same; ``general`` is the authority on everything it refuses."""
    if not shape.native:
        return general
    try:
        straight = msgspec.msgpack.Decoder(kind, ext_hook=wire.read_extension).decode
    except (TypeError, RuntimeError, NameError):  # a union or an annotation that msgspec does not take
        return general

    def read(data: bytes) -> Any:
        try:
            return straight(data)
        except (msgspec.MsgspecError, Refused, TypeError, ValueError, RecursionError):
            # Whatever it was, the general path meets it again and says it properly, or knows better (wide text, big ints).
            return general(data)

    return read


def _unencodable(name: str, fault: Refused) -> Unencodable:
    return Unencodable(f"{name}{fault.path} would not come back exactly: {fault.reason}.", f"{name}{fault.path}")


def _too_big(name: str, fault: Exception) -> Unencodable:
    reason = "it is nested too deep" if isinstance(fault, RecursionError) else f"it is too big ({fault})"
    return Unencodable(f"{name} cannot be encoded: {reason}. Keep large or deep values outside the event.", name)
