"""One short name for the code that folds and the schemas it folds, so that a stale snapshot is ignored (S-8.2).

The name changes when an operation, a constant, a default, a field or a base changes, here or in what the code reaches
by name inside its own top-level package. It does not change with line numbers, comments, layout, a second import, or what else
the process has done: of the standard library, whose modules keep caches, things are only named. It may change
with the Python release, whose bytecode it reads: a snapshot is then folded anew, never trusted wrongly.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import os
import re
import sys
import sysconfig
import types
import typing
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import attrs

#: Their repr says everything about them.
_CONSTANTS: Final = (str, bytes, int, float, complex, type(None), type(Ellipsis), Decimal, date, time, timedelta, UUID, enum.Enum, re.Pattern)
_STANDARD: Final = os.path.realpath(sysconfig.get_path("stdlib")) + os.sep
_FUNCTIONS: Final = (types.FunctionType, types.MethodType, staticmethod, classmethod, property, functools.partial, functools.cached_property)


def fingerprint(*things: object) -> str:
    """32 hex digits for functions, classes, strings and plain values, in this order.

    Functions count with bytecode, constants, names, defaults, closures, and the functions, classes and constants of their own
    package that they name; classes with name, event mark, bases, fields and methods.

    >>> fingerprint("a") == fingerprint("a"), fingerprint("a") == fingerprint("b")
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    walk = _Walk()
    for thing in things:
        for line in walk.lines(thing):
            blob = line.encode("utf-8", "surrogatepass")
            digest.update(len(blob).to_bytes(8, "big") + blob)
    return digest.hexdigest()


class _Walk:
    """Lines of text that say what a thing is; a thing met twice is named the second time, so circles end."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        # Objects whose ids are in _seen must stay alive, or an id would be given again.
        self._kept: list[object] = []

    def lines(self, thing: Any) -> Iterator[str]:
        if isinstance(thing, _CONSTANTS):
            yield f"constant {_name(type(thing))} {thing!r}"
        elif isinstance(thing, tuple | list):
            yield f"{type(thing).__name__} {len(thing)}"
            for each in thing:
                yield from self.lines(each)
        elif isinstance(thing, set | frozenset):
            yield f"{type(thing).__name__} {sorted(repr(list(_Walk().lines(each))) for each in thing)}"
        elif isinstance(thing, dict):
            yield f"dict {len(thing)}"
            for key, value in thing.items():
                yield from self.lines(key)
                yield from self.lines(value)
        elif isinstance(thing, _FUNCTIONS):
            yield from self._function(thing)
        elif isinstance(thing, types.CodeType):
            yield from self._code(thing)
        elif isinstance(thing, type) and not typing.get_args(thing):
            yield from self._class(thing)
        elif typing.get_origin(thing) is not None:
            yield f"generic {typing.get_origin(thing)!r}"
            for each in typing.get_args(thing):
                yield from self.lines(each)
        elif attrs.has(type(thing)) and self._first_time(thing):
            yield f"value of {_name(type(thing))}"
            for field in attrs.fields(type(thing)):
                yield from self.lines(getattr(thing, field.name, None))
        else:
            # Never its repr: that may hold an address. What kind of thing it is must do.
            yield f"object of {_name(type(thing))}"

    def _first_time(self, thing: object) -> bool:
        if id(thing) in self._seen:
            return False
        self._seen.add(id(thing))
        self._kept.append(thing)
        return True

    def _function(self, thing: Any) -> Iterator[str]:
        inner = [getattr(thing, part) for part in ("fget", "fset", "fdel", "func", "args", "keywords") if hasattr(thing, part)]
        if inner:  # a property, a cached_property, a partial
            yield type(thing).__name__
            yield from self.lines(inner)
            return
        function = getattr(thing, "__func__", thing)
        yield f"function {_name(function)}"
        if not isinstance(function, types.FunctionType) or _is_standard(function.__module__) or not self._first_time(function):
            return
        yield from self._code(function.__code__)
        yield from self.lines(function.__defaults__)
        yield from self.lines(function.__kwdefaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            yield f"closure {name}"
            try:
                yield from self.lines(cell.cell_contents)
            except ValueError:  # not filled yet
                yield "empty"
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield from self._reached(name, function.__globals__[name], function.__module__)

    def _reached(self, name: str, thing: Any, module: str) -> Iterator[str]:
        """A global that the function names: followed inside its own top-level package, only named beyond it."""
        if isinstance(thing, types.ModuleType):
            yield f"module {thing.__name__}"
            return
        yield f"global {name}"
        home = getattr(thing, "__module__", None)
        if isinstance(thing, type | types.FunctionType) and _root(home) != _root(module):
            yield _name(thing)
        else:
            yield from self.lines(thing)

    def _code(self, code: types.CodeType) -> Iterator[str]:
        yield f"code {code.co_name} {code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}"
        yield f"names {code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
        yield f"bytes {code.co_code.hex()} {code.co_exceptiontable.hex()}"
        yield from self.lines(code.co_consts)

    def _class(self, cls: type) -> Iterator[str]:
        yield f"class {_name(cls)}"
        if _is_standard(cls.__module__) or not self._first_time(cls):
            return
        own = cls.__dict__
        yield f"event {own.get('__event_type__')} {own.get('__event_version__')} tag {own.get('__tag__')!r}"
        for base in cls.__bases__:
            yield from (self._class(base) if _root(base.__module__) == _root(cls.__module__) else [f"base {_name(base)}"])
        if "__attrs_attrs__" in own:
            yield from self._fields(cls)
        for name in sorted(own):
            if _is_own_work(name, own[name], cls):
                yield f"member {name}"
                yield from self.lines(own[name])

    def _fields(self, cls: Any) -> Iterator[str]:
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except (NameError, AttributeError, TypeError, SyntaxError):
            hints = {}  # an annotation that does not resolve counts as its text
        for field in attrs.fields(cls):
            yield f"field {field.name} {field.alias} {field.init} {field.kw_only}"
            yield from self.lines(hints.get(field.name, field.type))
            default = field.default
            yield from self.lines(getattr(default, "factory", default) if default is not attrs.NOTHING else "no default")
            yield from self.lines(field.converter)


def _names(code: types.CodeType) -> set[str]:
    """Every global or attribute name in the code and the code inside it."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def _is_own_work(name: str, thing: object, cls: type) -> bool:
    """Methods and constants the author wrote; what attrs generated follows from the fields."""
    function = getattr(thing, "__func__", thing)
    if isinstance(function, types.FunctionType):
        generated = function.__code__.co_filename.startswith("<attrs generated")
        return not generated and _root(function.__globals__.get("__name__")) == _root(cls.__module__)
    if isinstance(thing, _FUNCTIONS):
        return True
    return not name.startswith("__") and isinstance(thing, (*_CONSTANTS, tuple, frozenset))


def _is_standard(module: str | None) -> bool:
    """Whether it is Python's own; a module of somebody else's may bear the name of one that is not imported, as ``test`` or ``code``."""
    root = _root(module)
    if root not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is None or os.path.realpath(file).startswith(_STANDARD)


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


def _root(module: str | None) -> str:
    return (module or "").partition(".")[0]
