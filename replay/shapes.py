"""What there can be under ``run``, before anything is folded: a misspelt field never holds a value, so it is refused, not waited for.

The state's own fields are checked where they are evaluated, for its class is known only there; an event's differ by its type.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import attrs

from .errors import BadExpression


@attrs.frozen
class Shape:
    """A part of ``run``: either of known ``fields``, or with one shape for ``each`` of its values."""

    fields: Mapping[str, Shape | None] = attrs.field(factory=dict)
    each: Shape | None = None
    #: What goes through it in a comprehension; of ``.items()`` the second of two.
    element: Shape | None = None
    pairs: bool = False


def _fields(*names: str, **shapes: Shape) -> Shape:
    return Shape({**dict.fromkeys(names), **shapes})


INTENT: Final = _fields("tool", "args", "state", "attempts", "expires", "key", "status", "value", "failure")
ACTIVATION: Final = _fields(
    *("state", "turns", "step", "index", "model_calls", "reads", "intents", "waits", "mode", "until", "results", "timed_out", "timers", "snapshot"),
    *("failures", "last_failure", "retry_at"),
    input=_fields("id", "type"),
)
RUN: Final = _fields(
    *("inputs", "completed", "line", "late", "blocked"),
    activations=Shape(each=ACTIVATION),
    intents=Shape(each=INTENT),
    spent=_fields("tokens", "cost"),
)


class Shapes:
    """The shapes of an expression's parts, and of the variables of its comprehensions."""

    def __init__(self) -> None:
        self._variables: dict[str, Shape | None] = {}

    def of(self, node: ast.expr) -> Shape | None:
        """The shape behind ``node``; ``None`` when anything may stand there."""
        if isinstance(node, ast.Name):
            return self._variables.get(node.id, RUN if node.id == "run" else None)
        if isinstance(node, ast.Attribute):
            return self._part(node.value, node.attr)
        if isinstance(node, ast.Subscript):
            return self._part(node.value, node.slice.value if isinstance(node.slice, ast.Constant) else None)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("values", "items", "get"):
            shape = self.of(node.func.value)
            if shape is None or shape.each is None:
                return None
            return shape.each if node.func.attr == "get" else Shape(element=shape.each, pairs=node.func.attr == "items")
        return None

    def _part(self, base: ast.expr, key: Any) -> Shape | None:
        shape = self.of(base)
        return None if shape is None else shape.each or shape.fields.get(key)

    def bind(self, names: list[str], source: ast.expr) -> None:
        """A comprehension's variables go through what ``source`` comes to."""
        shape = self.of(source)
        for place, name in enumerate(names):
            known = shape is not None and (place == 1 if shape.pairs and len(names) == 2 else not shape.pairs and len(names) == 1)
            self._variables[name] = shape.element if shape is not None and known else None

    def check(self, node: ast.Attribute | ast.Subscript) -> None:
        """Raises ``BadExpression`` for a field that what stands before it can never have; names the nearest."""
        key = node.attr if isinstance(node, ast.Attribute) else node.slice.value if isinstance(node.slice, ast.Constant) else None
        shape = self.of(node.value)
        if shape is not None and shape.fields and isinstance(key, str) and key not in shape.fields:
            close = get_close_matches(key, shape.fields, n=1)
            base = ast.unparse(node.value)
            meant = f" Did you mean {base}.{close[0]}?" if close else ""
            raise BadExpression(f"{ast.unparse(node)}: {base} has no {key!r}.{meant} It has: {', '.join(shape.fields)}")
