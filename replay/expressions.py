"""Conditions on a state and an event: ``not st.open_orders``, ``ev.type == "intent.settled" and ev.status != "OK"``.

Python's syntax, evaluated by ``evaluating``, never by Python: literals, the names ``st`` (or ``state``), ``run``, ``ev`` and
``version``, fields and keys, comparisons, arithmetic, comprehensions and a few functions. Nothing is called that is not on
the list, no name begins with ``_``, and how large an expression may be and how long it may take is bounded.

A part that is not there (yet) makes a third truth value beside true and false: ``or`` is true when another part is, ``and``
false when another is, and an expression that comes to it does not hold.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from typing import Any, Final

import attrs

from .errors import BadExpression
from .evaluating import ROOTS, Compiler, Part, Scope
from .paths import ABSENT
from .vocabulary import FUNCTIONS

_LONGEST: Final = 2_000
_MOST_NODES: Final = 500
_DEEPEST: Final = 40


@attrs.frozen(eq=False)
class Expression:
    """A condition that has been read."""

    text: str
    #: Which of ``st``, ``run``, ``ev`` and ``version`` it speaks of.
    names: frozenset[str]
    _part: Part

    def holds(self, tree: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> bool:
        """Whether it is true of a state (``state_as_tree`` or ``trees.tree_of``) and the event that led to it.

        Raises ``BadExpression`` naming the part that cannot be evaluated: a field that no such object has, types that
        do not go together, too many steps.
        """
        value = self.value(tree, event)
        return value is not ABSENT and bool(value)

    def value(self, tree: Mapping[str, Any], event: Mapping[str, Any] | None = None) -> Any:
        """What it comes to; ``ABSENT`` when a part of it is not there."""
        return self._part(Scope(tree, event))


def parse_expression(text: str) -> Expression:
    """The condition behind ``text``. Raises ``BadExpression`` naming the part that is not allowed.

    >>> late = parse_expression("st.cents > 4000 and 'o-1' in st.orders")
    >>> late.holds({"state": {"cents": 4200, "orders": {"o-1"}}}), late.holds({"state": {"cents": 4200}})
    (True, False)
    """
    stripped = text.strip()
    if not stripped or len(stripped) > _LONGEST:
        raise BadExpression(f"{stripped!r:.80} is no expression: {'it is empty' if not stripped else f'it is longer than {_LONGEST} characters'}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            root = ast.parse(stripped, mode="eval").body
    except SyntaxError as problem:
        place = f" at character {problem.offset}" if problem.offset else ""
        raise BadExpression(f"{stripped!r:.200} is no expression: {problem.msg}{place}") from None
    except (ValueError, MemoryError, RecursionError) as problem:
        raise BadExpression(f"{stripped!r:.200} is no expression: {problem}") from None
    _check_size(stripped, root)
    compiler = Compiler()
    part = compiler.compile(root)
    return Expression(stripped, frozenset(compiler.names), part)


def _check_size(text: str, root: ast.AST) -> None:
    level, count, depth = [root], 0, 0
    while level:
        count, depth = count + len(level), depth + 1
        if count > _MOST_NODES or depth > _DEEPEST:
            raise BadExpression(f"{text!r:.80} has too many parts, or parts nested deeper than {_DEEPEST} levels: split it")
        level = [inner for each in level for inner in ast.iter_child_nodes(each)]


__all__ = ["FUNCTIONS", "ROOTS", "Expression", "parse_expression"]
