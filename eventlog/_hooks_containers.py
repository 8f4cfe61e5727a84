"""Shapes of list, tuple, set, frozenset and dict in typed positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import wire
from ._shapes import Encode, Refused, Shape, located, mismatch, shown

_DICT_ONLY = frozenset({dict})
_LIST_ONLY = frozenset({list})


def _every(kind: Any, encode_inner: Encode, name: str) -> Encode:
    def encode(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise mismatch(value, name)
        trees: list[Any] = []
        try:
            for inner in value:
                trees.append(encode_inner(inner))
        except Refused as fault:
            raise fault.inside(f"[{len(trees)}]") from None
        return trees

    return encode


def _decode_every(inner: Shape, build: Callable[[list[Any]], Any], accepts: frozenset[type], name: str) -> Callable[..., Any]:
    decode_inner = inner.decode

    def decode(tree: Any, _: Any = None, /) -> Any:
        if type(tree) not in accepts:
            raise mismatch(tree, name)
        values: list[Any] = []
        try:
            for each in tree:
                values.append(decode_inner(each))
        except Refused as fault:
            raise fault.inside(f"[{len(values)}]") from None
        return build(values)

    return decode


def _same(values: list[Any]) -> list[Any]:
    return values


def list_shape(inner: Shape) -> Shape:
    label = f"list[{inner.label}]"
    return Shape(
        label,
        located(_every(list, inner.encoder(""), label)),
        _decode_every(inner, _same, _LIST_ONLY, label),
        _LIST_ONLY,
        _LIST_ONLY,
        native=inner.native,
        hashable=False,
    )


def uniform_tuple_shape(inner: Shape) -> Shape:
    label = f"tuple[{inner.label}, ...]"
    return Shape(
        label,
        located(_every(tuple, inner.encoder(""), label)),
        _decode_every(inner, tuple, frozenset({list, tuple}), label),
        frozenset({tuple}),
        _LIST_ONLY,
        native=inner.native,
        hashable=inner.hashable,
    )


def fixed_tuple_shape(inners: list[Shape]) -> Shape:
    label = f"tuple[{', '.join(inner.label for inner in inners) or '()'}]"
    encoders = [inner.encoder(f"[{index}]") for index, inner in enumerate(inners)]
    decoders = [inner.decode for inner in inners]

    def encode(value: Any) -> list[Any]:
        if type(value) is not tuple or len(value) != len(encoders):
            raise mismatch(value, label)
        return [hook(inner) for hook, inner in zip(encoders, value, strict=True)]

    def decode(tree: Any, _: Any = None, /) -> tuple[Any, ...]:
        if type(tree) not in (list, tuple) or len(tree) != len(decoders):
            raise mismatch(tree, label)
        values: list[Any] = []
        try:
            for hook, inner in zip(decoders, tree, strict=True):
                values.append(hook(inner))
        except Refused as fault:
            raise fault.inside(f"[{len(values)}]") from None
        return tuple(values)

    return Shape(
        label,
        located(encode),
        decode,
        frozenset({tuple}),
        _LIST_ONLY,
        native=all(inner.native for inner in inners),
        hashable=all(inner.hashable for inner in inners),
    )


def set_shape(kind: Any, inner: Shape) -> Shape:
    """A set or frozenset; its array is sorted by the bytes of the elements, so that equal sets are equal bytes."""
    label = f"{kind.__name__}[{inner.label}]"
    if not inner.hashable:
        raise Refused(f"{label}: {inner.label} cannot be hashed; use a tuple or a list of it")
    inner_encode = inner.encoder("{…}")

    def encode(value: Any) -> list[Any]:
        if type(value) is not kind:
            raise mismatch(value, label)
        return wire.in_order([inner_encode(each) for each in value])

    def build(values: list[Any]) -> Any:
        try:
            return kind(values)
        except TypeError as fault:
            raise Refused(f"{label}: {fault}") from fault

    return Shape(
        label,
        located(encode),
        _decode_every(inner, build, frozenset({list, tuple, set, frozenset}), label),
        frozenset({kind}),
        _LIST_ONLY,
        native=inner.native,
        hashable=kind is frozenset,
    )


def dict_shape(key: Shape, inner: Shape) -> Shape:
    """Keys of text make a plain map; all others, and text with lone surrogates, make the dict extension."""
    label = f"dict[{key.label}, {inner.label}]"
    if not key.key:
        raise Refused(f"{label}: a key may be str, int, bytes, UUID, date, an Enum or a Literal of these, not {key.label}; use a list of pairs")
    encode_key, encode_inner = key.encoder("[key]"), inner.encoder("")
    decode_key, decode_inner = key.decode, inner.decode
    text = key.python == frozenset({str})

    def encode(value: Any) -> Any:
        if type(value) is not dict:
            raise mismatch(value, label)
        pairs = []
        plain = text
        for name, each in value.items():
            packed = encode_key(name)
            if type(packed) is not str:
                plain = False
            try:
                pairs.append((packed, encode_inner(each)))
            except Refused as fault:
                raise fault.inside(f"[{shown(name)}]") from None
        return dict(pairs) if plain or not pairs else wire.pack_pairs(pairs)

    def decode(tree: Any, _: Any = None, /) -> dict[Any, Any]:
        if type(tree) is not dict:
            raise mismatch(tree, label)
        values = {}
        for name, each in tree.items():
            try:
                values[decode_key(name)] = decode_inner(each)
            except Refused as fault:
                raise fault.inside(f"[{shown(name)}]") from None
        return values

    return Shape(label, located(encode), decode, _DICT_ONLY, _DICT_ONLY, native=text and inner.native, hashable=False)
