"""Shapes of unions: members must be told apart by the type of their tree; attrs classes are told apart by a tag."""

from __future__ import annotations

from typing import Any, Final

from ._shapes import Decode, Encode, Refused, Shape, located, mismatch

TAG: Final = ""
"""The map key that holds a class's tag; no field can have this name."""


def union_shape(members: list[Shape]) -> Shape:
    label = " | ".join(member.label for member in members)
    plain = [member for member in members if member.cls is None]
    classes = [member for member in members if member.cls is not None]
    parts = [*plain, _tagged(classes)] if len(classes) > 1 else [*plain, *classes]
    by_wire = _dispatch(parts, label)
    encoders: dict[type, Encode] = {kind: part.encoder("") for part in parts for kind in part.python}
    if len(parts) == 2 and any(part.label == "None" for part in parts):
        encoder = _optional(next(part for part in parts if part.label != "None"))
    else:
        encoder = located(_choose(encoders, label))

    def decode(tree: Any, _: Any = None, /) -> Any:
        hook = by_wire.get(type(tree))
        if hook is None:
            raise mismatch(tree, label)
        return hook(tree)

    return Shape(
        label,
        encoder,
        decode,
        frozenset(encoders),
        frozenset().union(*(part.wire for part in parts)),
        native=all(part.native for part in parts),
        hashable=all(part.hashable for part in parts),
    )


def _choose(encoders: dict[type, Encode], label: str) -> Encode:
    def encode(value: Any) -> Any:
        hook = encoders.get(type(value))
        if hook is None:
            raise mismatch(value, label)
        return hook(value)

    return encode


def _optional(part: Shape) -> Any:
    def encoder(where: str) -> Encode:
        inner = part.encoder(where)

        def encode(value: Any) -> Any:
            return None if value is None else inner(value)

        return encode

    return encoder


def _dispatch(parts: list[Shape], label: str) -> dict[type, Decode]:
    by_wire: dict[type, Decode] = {}
    owner: dict[type, Shape] = {}
    for part in parts:
        for kind in part.wire:
            if kind in owner:
                raise Refused(
                    f"{label} is ambiguous: stored, {owner[kind].label} and {part.label} are both {kind.__name__}; "
                    "keep one of them, or wrap each in an attrs class of its own"
                )
            owner[kind] = part
            by_wire[kind] = part.decode
    for part in parts:
        for kind in part.lenient - owner.keys():
            by_wire[kind] = part.decode
    return by_wire


def _tagged(classes: list[Shape]) -> Shape:
    """Several attrs classes: a map with the tag beside the fields."""
    label = " | ".join(shape.label for shape in classes)
    by_tag: dict[str, Shape] = {}
    for shape in classes:
        if shape.tag in by_tag:
            both = f"{by_tag[shape.tag].cls!r} and {shape.cls!r}"
            raise Refused(f"{label} is ambiguous: {both} have the tag {shape.tag!r}; give one of them a __tag__ = '…' of its own")
        by_tag[shape.tag] = shape
    encoders = {shape.cls: (shape.tag, shape.encoder("")) for shape in classes}

    def encode(value: Any) -> dict[str, Any]:
        tag, hook = encoders[type(value)]
        tree: dict[str, Any] = hook(value)
        tree[TAG] = tag
        return tree

    def decode(tree: Any, _: Any = None, /) -> Any:
        tag = tree.get(TAG)
        shape = by_tag.get(tag) if type(tag) is str else None
        if shape is None:
            raise Refused(f"no class of {label} has the tag {tag!r}; known are {', '.join(map(repr, by_tag))}")
        return shape.decode(tree)

    return Shape(
        label, located(encode), decode, frozenset().union(*(shape.python for shape in classes)), frozenset({dict}), hashable=all(s.hashable for s in classes)
    )
