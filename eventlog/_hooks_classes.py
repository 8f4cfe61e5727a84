"""Shapes of attrs classes. cattrs writes the two functions; the hooks of the fields are ours, and strict."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, Final

import attrs
from cattrs import AttributeValidationNote, BaseConverter, ClassValidationError
from cattrs.gen import make_dict_structure_fn_from_attrs, make_dict_unstructure_fn_from_attrs

from ._shapes import Encode, Refused, Shape, label_of, located, mismatch

EVENT_TYPE: Final = "__event_type__"
EVENT_VERSION: Final = "__event_version__"
_BYPASSED: Final = ("__attrs_pre_init__", "__attrs_post_init__")


def to_float(value: Any) -> Any:
    """The converter that ``@event`` gives to ``float`` fields, so that the value held is the one that comes back."""
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:  # left as it is: encoding refuses it, naming the field
            return value
    return value


def field_types(cls: type) -> dict[str, Any]:
    """Resolved annotations of the class's fields; raises ``Refused`` naming the field whose annotation does not resolve."""
    if not attrs.has(cls) or "__attrs_attrs__" not in cls.__dict__:
        raise Refused(f"{label_of(cls)} is no attrs class; put @attrs.frozen on it")
    if getattr(cls, "__parameters__", ()):
        raise Refused(f"{label_of(cls)} is generic; write one attrs class for each type it is used with")
    fields = attrs.fields(cls)
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception as fault:
        # Any annotation may run any code when it is resolved; what it raises is the author's mistake to see.
        unknown = getattr(fault, "name", None)
        step = next((f".{field.name}" for field in fields if unknown and unknown in str(field.type)), "")
        raise Refused(f"its type cannot be resolved ({fault}); the name must be at the top level of module {cls.__module__}", step) from fault
    types = {}
    for field in fields:
        if not field.init:
            raise Refused("a field with init=False cannot be given back its value; make it a property", f".{field.name}")
        kind = hints.get(field.name, field.type)
        if kind is None:
            raise Refused("it has no type; annotate it", f".{field.name}")
        types[field.name] = kind
    return types


def class_shape(cls: type, shape_of: Callable[[Any], Shape]) -> Shape:
    """Compile ``cls``; ``shape_of`` compiles the types of its fields."""
    shapes = {}
    for name, kind in field_types(cls).items():
        try:
            shapes[name] = shape_of(kind)
        except Refused as fault:
            raise fault.inside(f".{name}") from None
    label = label_of(cls)
    unstructure: Encode
    structure: Callable[[Any, Any], Any]

    # Written when first used: a registry knows many classes, a process meets few of them, and most of those are read by msgspec.
    def first_out(value: Any) -> Any:
        nonlocal unstructure
        unstructure = _unstructuring(cls, shapes)
        return unstructure(value)

    def first_in(tree: Any, kind: Any) -> Any:
        nonlocal structure
        structure = _structuring(cls, shapes)
        return structure(tree, kind)

    unstructure, structure = first_out, first_in

    def encode(value: Any) -> Any:
        if type(value) is not cls:
            raise mismatch(value, label)
        return unstructure(value)

    def decode(tree: Any, _: Any = None, /) -> Any:
        if type(tree) is not dict:
            raise mismatch(tree, f"{label} as a map")
        try:
            return structure(tree, cls)
        except ClassValidationError as group:
            raise _first_fault(group, label) from None

    return Shape(
        label,
        located(encode),
        decode,
        frozenset({cls}),
        frozenset({dict}),
        native=_may_skip_init(cls) and all(shape.native for shape in shapes.values()),
        hashable=cls.__hash__ is not None and all(shape.hashable for shape in shapes.values()),
        cls=cls,
        tag=_tag_of(cls),
    )


def _unstructuring(cls: type, shapes: dict[str, Shape]) -> Encode:
    """cattrs finds a field's hook by the field's type, so each field gets a type of its own for the occasion."""
    converter, fields = _apart(cls)
    for field in fields:
        converter.register_unstructure_hook(field.type, shapes[field.name].encoder(f".{field.name}"))
    return make_dict_unstructure_fn_from_attrs(fields, cls, converter, _cattrs_use_linecache=False)


def _structuring(cls: type, shapes: dict[str, Shape]) -> Callable[[Any, Any], Any]:
    """The way back, in the same manner."""
    converter, fields = _apart(cls)
    for field in fields:
        converter.register_structure_hook(field.type, shapes[field.name].decode)
    return make_dict_structure_fn_from_attrs(fields, cls, converter, _cattrs_use_linecache=False)


def _apart(cls: type) -> tuple[BaseConverter, list[attrs.Attribute[Any]]]:
    return BaseConverter(detailed_validation=True), [field.evolve(type=type(f"_{field.name}", (), {})) for field in attrs.fields(cls)]


def _first_fault(group: ClassValidationError, label: str) -> Refused:
    fault = group.exceptions[0]
    notes = [note for note in getattr(fault, "__notes__", ()) if isinstance(note, AttributeValidationNote)]
    if not notes:
        return Refused(f"{label} refused the values: {type(fault).__name__}: {fault}")
    step = f".{notes[-1].name}"
    if isinstance(fault, Refused):
        return fault.inside(step)
    if isinstance(fault, KeyError):
        return Refused("it is missing", step)
    return Refused(f"{type(fault).__name__}: {fault}", step)


def _may_skip_init(cls: type) -> bool:
    """msgspec fills the slots without ``__init__``; a class whose ``__init__`` does more must go the long way."""
    if "__slots__" not in cls.__dict__ or any(hasattr(cls, name) for name in _BYPASSED) or hasattr(cls, "_attrs_cached_hash"):
        return False
    # msgspec reads annotations, not the types attrs was told (``attrs.make_class``); without them it would check nothing.
    annotated = {name for base in cls.__mro__ for name in inspect.get_annotations(base)}
    return all(_is_plain(field) and field.name in annotated for field in attrs.fields(cls))


def _is_plain(field: attrs.Attribute[Any]) -> bool:
    takes_self = getattr(field.default, "takes_self", False)
    converter: object = field.converter
    harmless = converter is None or converter is to_float
    return field.validator is None and harmless and not takes_self and not field.name.startswith("_")


def _tag_of(cls: type) -> str:
    tag = cls.__dict__.get("__tag__", cls.__dict__.get(EVENT_TYPE, cls.__name__))
    if type(tag) is not str or not tag:
        raise Refused(f"the __tag__ of {label_of(cls)} must be a string, not {tag!r}")
    return tag
