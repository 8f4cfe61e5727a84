"""Appliers that may change a state in place while nobody else holds it.

An applier gives back a new state. While many events are folded at once, each of these but the last is seen by the next
applier only, and copying it is most of what a fold costs. So where an applier's bytecode shows that it does nothing with ``self``
but read fields and, as its last act, return ``self.evolve(…)`` or ``self``, a second form of it is made that changes what it got.

Why nobody can tell: ``evolve``'s arguments are there before it is called, and nothing runs between its change and the return, so the
old state is read by nobody. ``self`` goes nowhere else, so nobody can have kept it. Only the fold calls the second form, and only
with a state that an applier of this kind has just made and that it has given to nobody. Whatever is not recognised keeps copying.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs

from .aggregate import Aggregate

Applier: TypeAlias = Callable[[Any, Any], Any]
"""``(state, event) -> state``."""
_LOADS: Final = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_CALLS: Final = frozenset({"CALL", "CALL_KW"})
#: Names by which a function reaches its own variables, and ``self`` with them.
_REFLECTING: Final = frozenset({"locals", "vars", "eval", "exec", "super", "__class__"})
_UNUSUAL: Final = 0x20 | 0x80 | 0x100 | 0x200  # generators and coroutines
_IN_PLACE: Final = Aggregate.evolve_in_place.__name__


@functools.lru_cache(maxsize=1024)
def in_place(applier: Applier, aggregate: type[Aggregate]) -> Applier | None:
    """``applier`` as a function that changes the state it is given; ``None`` when it has to copy."""
    if not isinstance(applier, types.FunctionType) or not _may_change(aggregate) or not _only_evolves(applier.__code__, _fields(aggregate)):
        return None
    code = applier.__code__
    names = tuple(_IN_PLACE if name == "evolve" else name for name in code.co_names)
    return types.FunctionType(code.replace(co_names=names), applier.__globals__, applier.__name__, applier.__defaults__, applier.__closure__)


def _fields(aggregate: Any) -> frozenset[str]:
    return frozenset(field.name for field in attrs.fields(aggregate))


def _may_change(aggregate: type[Aggregate]) -> bool:
    """Nothing of its own stands between its fields and who reads or evolves them."""
    own = aggregate.evolve is Aggregate.evolve and aggregate.__getattribute__ is object.__getattribute__
    return own and aggregate.__evolves_plainly__ and not any(hasattr(getattr(aggregate, name, None), "__set__") for name in _fields(aggregate))


def _only_evolves(code: types.CodeType, fields: frozenset[str]) -> bool:
    if code.co_argcount != 2 or code.co_kwonlyargcount or code.co_flags & (_UNUSUAL | 0x0C):  # 0x0C: *args, **kwargs
        return False
    me = code.co_varnames[0]
    if code.co_cellvars or code.co_exceptiontable or _REFLECTING & {*code.co_names, *code.co_freevars}:
        return False
    found = list(dis.get_instructions(code))
    returned = set[int]()
    for place, each in enumerate(found):
        if not _concerns(each, me):
            continue
        if each.opname not in _LOADS:
            return False
        after = found[place + 1]
        if after.opname == "RETURN_VALUE" and not after.is_jump_target:
            returned.add(place + 1)
        elif after.opname in ("LOAD_METHOD", "LOAD_ATTR") and after.argval == "evolve":
            end = _returned_at_once(found, place)
            if not end:
                return False
            returned.add(end)
        elif after.opname != "LOAD_ATTR" or after.argval not in fields or after.is_jump_target:
            return False
    evolving = sum(each.argval == "evolve" for each in found if each.opcode in dis.hasname)
    ends = {place for place, each in enumerate(found) if each.opname.startswith("RETURN")}
    return ends == returned and evolving == sum(found[end - 1].opname in _CALLS for end in ends)


def _concerns(instruction: dis.Instruction, variable: str) -> bool:
    """Whether it has to do with ``variable``; some load or store two at a time."""
    if "FAST" not in instruction.opname and "DEREF" not in instruction.opname:
        return False
    return variable == instruction.argval or (isinstance(instruction.argval, tuple) and variable in instruction.argval)


def _returned_at_once(found: list[dis.Instruction], place: int) -> int:
    """Where the function returns what the method looked up behind ``place`` gives, at once and in a straight line; 0 when it does not."""
    depth = 1
    for at in range(place + 1, len(found) - 1):
        each = found[at]
        if each.is_jump_target or each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            return 0
        depth += _stack_effect(each)
        if depth < 2:
            after = found[at + 1]
            return at + 1 if depth == 1 and each.opname in _CALLS and after.opname == "RETURN_VALUE" and not after.is_jump_target else 0
    return 0


def _stack_effect(instruction: dis.Instruction) -> int:
    try:
        return dis.stack_effect(instruction.opcode, instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    except ValueError:  # one that a later Python has and does not account for
        return -1_000
