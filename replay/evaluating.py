"""From the syntax of an expression to functions over a scope: the whole of what an expression may say (see ``expressions``).

Rules of this file: what is not in a table is refused, when the expression is read. No attribute is ever taken off an
object but a field of an attrs class; no function is called but those of ``FUNCTIONS`` and ``METHODS``. ``ABSENT`` is the
third truth value: a part that comes to it makes the whole come to it, unless ``and`` and ``or`` know better.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, NoReturn, TypeAlias

import attrs

from .errors import BadExpression
from .paths import ABSENT, child, field_names
from .shapes import Shapes
from .vocabulary import COMPARISONS, FUNCTIONS, LARGEST, METHODS, MOST_STEPS, OPERATORS, UNARY, all_of


class Scope:
    """One evaluation: the state, the event, the variables of comprehensions, and how many steps it has taken."""

    __slots__ = ("event", "steps", "tree", "variables")

    def __init__(self, tree: Mapping[str, Any], event: Mapping[str, Any] | None) -> None:
        self.tree, self.event, self.steps = tree, event, 0
        self.variables: dict[str, Any] = {}


Part: TypeAlias = Callable[[Scope], Any]

ROOTS: Final[dict[str, Part]] = {
    "st": lambda scope: child(scope.tree, "state"),
    "state": lambda scope: child(scope.tree, "state"),
    "run": lambda scope: child(scope.tree, "run"),
    "version": lambda scope: child(scope.tree, "version"),
    "ev": lambda scope: ABSENT if scope.event is None else scope.event,
}


class Compiler:
    """Turns one expression into a ``Part``; ``names`` are the roots it speaks of."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._variables: list[str] = []
        self._shapes = Shapes()

    def compile(self, node: ast.expr) -> Part:
        """The part behind ``node``; raises ``BadExpression`` for what an expression may not say."""
        make = _MAKERS.get(type(node))
        if make is None:
            _refuse(node, f"{type(node).__name__} is nothing an expression may say")
        return make(self, node)

    def all(self, nodes: Iterable[ast.expr]) -> list[Part]:
        """The parts behind ``nodes``."""
        return [self.compile(node) for node in nodes]

    # ── names, fields, keys ─────────────────────────────────────────────────────────────────────────────────────────

    def constant(self, node: ast.Constant) -> Part:
        value = node.value
        if value is Ellipsis or isinstance(value, complex):
            _refuse(node, "it is no value a state can hold")
        return lambda scope: value

    def name(self, node: ast.Name) -> Part:
        name = node.id
        if name in self._variables:
            return lambda scope: scope.variables[name]
        root = ROOTS.get(name)
        if root is None:
            known = (*ROOTS, *FUNCTIONS)
            close = get_close_matches(name, known, n=1)
            meant = f" Did you mean {close[0]}?" if close else ""
            field = "" if name.startswith("_") else f" A field of the state is st.{name}."
            _refuse(node, f"there is no such name.{meant}{field} Names: {', '.join(known)}")
        self.names.add("st" if name == "state" else name)
        return root

    def attribute(self, node: ast.Attribute) -> Part:
        if node.attr.startswith("_"):
            _refuse(node, "names that begin with _ are out of reach")
        self._shapes.check(node)
        base, name, part = self.compile(node.value), node.attr, ast.unparse(node)

        def field(scope: Scope) -> Any:
            value = base(scope)
            if value is ABSENT or value is None:
                return ABSENT
            if isinstance(value, Mapping):
                return _simple(child(value, name))
            if attrs.has(type(value)):
                names = field_names(type(value))
                if name not in names:
                    raise BadExpression(f"{part}: {type(value).__name__} has no {name!r}; it has: {', '.join(names)}")
                return _simple(getattr(value, name))
            raise BadExpression(f"{part}: a {type(value).__name__} has no fields")

        return field

    def subscript(self, node: ast.Subscript) -> Part:
        self._shapes.check(node)
        base, part = self.compile(node.value), ast.unparse(node)
        if isinstance(node.slice, ast.Slice):
            ends = [self.compile(each) if each is not None else _nothing for each in (node.slice.lower, node.slice.upper, node.slice.step)]
            return _guarded(part, lambda value, *given: value[slice(*given)] if isinstance(value, str | list | tuple) else _odd(value, "slice"), [base, *ends])
        key = self.compile(node.slice)

        def at(value: Any, place: Any) -> Any:
            if isinstance(value, str):
                return value[place] if -len(value) <= place < len(value) else ABSENT
            return _simple(child(value, place)) if isinstance(value, Mapping | list | tuple) else _odd(value, "key")

        return _guarded(part, at, [base, key])

    # ── operators ───────────────────────────────────────────────────────────────────────────────────────────────────

    def boolean(self, node: ast.BoolOp) -> Part:
        parts, decided = self.all(node.values), isinstance(node.op, ast.Or)

        def combined(scope: Scope) -> Any:
            unknown, value = False, None
            for part in parts:
                value = part(scope)
                if value is ABSENT:
                    unknown = True
                elif bool(value) is decided:
                    return value
            return ABSENT if unknown else value

        return combined

    def unary(self, node: ast.UnaryOp) -> Part:
        apply = UNARY.get(type(node.op))
        if apply is None:
            _refuse(node, "~ is nothing an expression may say")
        return _guarded(ast.unparse(node), apply, [self.compile(node.operand)], nones=isinstance(node.op, ast.Not))

    def binary(self, node: ast.BinOp) -> Part:
        found = OPERATORS.get(type(node.op))
        if found is None:
            _refuse(node, "this operator is nothing an expression may say")
        apply, kinds = found

        def bounded(left: Any, right: Any) -> Any:
            for value in (left, right):
                if not isinstance(value, kinds):
                    raise TypeError(f"{type(value).__name__} {value!r:.40} does not go with it")
            value = apply(left, right)
            size = value.bit_length() if isinstance(value, int) else len(value) if isinstance(value, str | list | tuple) else 0
            if size > LARGEST:
                raise ValueError(f"it comes to more than {LARGEST} bits, characters or elements")
            return value

        return _guarded(ast.unparse(node), bounded, self.all([node.left, node.right]))

    def compare(self, node: ast.Compare) -> Part:
        parts, text = self.all([node.left, *node.comparators]), ast.unparse(node)
        steps = [
            (_guarded(text, COMPARISONS[type(op)], [parts[n], parts[n + 1]], nones=isinstance(op, ast.Eq | ast.NotEq | ast.Is | ast.IsNot)))
            for n, op in enumerate(node.ops)
        ]
        return steps[0] if len(steps) == 1 else lambda scope: all_of(step(scope) for step in steps)

    def choice(self, node: ast.IfExp) -> Part:
        test, then, otherwise = self.all([node.test, node.body, node.orelse])

        def chosen(scope: Scope) -> Any:
            value = test(scope)
            return ABSENT if value is ABSENT else then(scope) if value else otherwise(scope)

        return chosen

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def call(self, node: ast.Call) -> Part:
        part = ast.unparse(node)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            _refuse(node, "calls take plain arguments")
        if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
            name = node.func.id
            return _guarded(part, _counted(FUNCTIONS[name]), self.all(node.args))
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            kinds, method = METHODS[node.func.attr]

            def called(value: Any, *given: Any) -> Any:
                return _simple(method(value, *given)) if isinstance(value, kinds) else _odd(value, "such method")

            return _guarded(part, called, self.all([node.func.value, *node.args]))
        return _refuse(node, f"it may not be called; these may: {', '.join(FUNCTIONS)}, and of mappings and texts {', '.join(METHODS)}")

    # ── collections and comprehensions ──────────────────────────────────────────────────────────────────────────────

    def display(self, node: ast.List | ast.Tuple | ast.Set) -> Part:
        build: Callable[[Iterable[Any]], Any] = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
        return _guarded(ast.unparse(node), lambda *values: build(values), self.all(node.elts), nones=True)

    def mapping(self, node: ast.Dict) -> Part:
        if None in node.keys:
            _refuse(node, "** is nothing an expression may say")
        keys = [key for key in node.keys if key is not None]
        return _guarded(
            ast.unparse(node),
            lambda *flat: dict(zip(flat[: len(keys)], flat[len(keys) :], strict=True)),
            [*self.all(keys), *self.all(node.values)],
            nones=True,
        )

    def comprehension(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> Part:
        loops, text = [], ast.unparse(node)
        before = len(self._variables)
        for each in node.generators:
            if each.is_async:
                _refuse(node, "nothing is waited for here")
            source = self.compile(each.iter)
            names = _targets(each.target)
            self._variables += names
            self._shapes.bind(names, each.iter)
            loops.append((source, names, isinstance(each.target, ast.Tuple), self.all(each.ifs)))
        element = self.compile(node.elt)
        del self._variables[before:]

        def elements(scope: Scope, depth: int = 0) -> Iterator[Any]:
            if depth == len(loops):
                yield element(scope)
                return
            source, names, unpacked, conditions = loops[depth]
            for value in _through(source(scope), text):
                scope.steps += 1
                if scope.steps > MOST_STEPS:
                    raise BadExpression(f"{text}: it takes more than {MOST_STEPS:,} steps")
                scope.variables.update(zip(names, value, strict=True) if unpacked else ((names[0], value),))
                if all(_is_true(condition(scope)) for condition in conditions):
                    yield from elements(scope, depth + 1)

        if isinstance(node, ast.GeneratorExp):
            return elements
        build: Callable[[Iterable[Any]], Any] = list if isinstance(node, ast.ListComp) else set
        return _guarded(text, build, [elements])


def _is_true(value: Any) -> bool:
    return value is not ABSENT and bool(value)


def _nothing(scope: Scope) -> None:
    return None


def _odd(value: Any, what: str) -> NoReturn:
    raise TypeError(f"a {type(value).__name__} has no {what}")


def _simple(value: Any) -> Any:
    """A member of an enumeration is compared by its value, as it is shown."""
    return value.value if isinstance(value, enum.Enum) and value is not ABSENT else value


def _through(value: Any, text: str) -> Iterable[Any]:
    if value is ABSENT or value is None:
        return ()
    if isinstance(value, Mapping | list | tuple | set | frozenset | str | Iterator):
        return value
    raise BadExpression(f"{text}: one cannot go through a {type(value).__name__}")


def _targets(target: ast.expr) -> list[str]:
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    found = [each.id for each in names if isinstance(each, ast.Name)]
    if len(found) != len(names):
        _refuse(target, "a comprehension's variables are names")
    for name in found:
        if name in ROOTS or name in FUNCTIONS or name.startswith("_"):
            _refuse(target, f"{name!r} has a meaning already; call the variable something else")
    return found


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        if given and isinstance(given[0], list | tuple | set | frozenset | Mapping) and len(given[0]) > MOST_STEPS:
            raise ValueError(f"it takes more than {MOST_STEPS:,} steps")
        return function(*given)

    return counted


def _guarded(part: str, apply: Callable[..., Any], operands: list[Part], *, nones: bool = False) -> Part:
    """``apply`` over the operands' values, ``ABSENT`` when one of them is; what it cannot do is told with the part.

    ``nones``: ``None`` is a value like any other here. Otherwise what fails with a ``None`` among the operands is not there yet.
    """

    def guarded(scope: Scope) -> Any:
        values = [operand(scope) for operand in operands]
        for value in values:
            if value is ABSENT:
                return ABSENT
        try:
            return apply(*values)
        except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
            if not nones and any(value is None for value in values):
                return ABSENT
            raise BadExpression(f"{part}: {problem}") from None

    return guarded


def _refuse(node: ast.AST, why: str) -> NoReturn:
    raise BadExpression(f"{ast.unparse(node)}: {why}")


_MAKERS: Final[dict[type, Callable[[Compiler, Any], Part]]] = {
    ast.Constant: Compiler.constant,
    ast.Name: Compiler.name,
    ast.Attribute: Compiler.attribute,
    ast.Subscript: Compiler.subscript,
    ast.BoolOp: Compiler.boolean,
    ast.UnaryOp: Compiler.unary,
    ast.BinOp: Compiler.binary,
    ast.Compare: Compiler.compare,
    ast.IfExp: Compiler.choice,
    ast.Call: Compiler.call,
    ast.List: Compiler.display,
    ast.Tuple: Compiler.display,
    ast.Set: Compiler.display,
    ast.Dict: Compiler.mapping,
    ast.GeneratorExp: Compiler.comprehension,
    ast.ListComp: Compiler.comprehension,
    ast.SetComp: Compiler.comprehension,
}
