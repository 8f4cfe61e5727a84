"""Tools: plain functions with a schema, either read-only (run inline, journalled) or with a side effect (staged as intents).

What a provider sees is the schema; the ``intent`` parameter never appears in it and can never be supplied as an
argument. Importing this module brings no runtime, model client or store with it, so an effector can load tools alone.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar, get_type_hints, overload

import attrs
import msgspec

from ..eventlog.codec import Codec
from ..eventlog.errors import LogError
from ..eventlog.registry import EventRegistry
from .declaring import cannot_be_given, cannot_reconcile, not_a_function, not_of_its_type
from .errors import ArgumentRefused, DefinitionError, UnknownTool, WrongToolKind
from .retry import RetryPolicy
from .tool_policies import Rate, ToolPolicies

F = TypeVar("F", bound=Callable[..., Any])
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*\Z")
_INTENT: Final = "intent"
DEFAULT_TIMEOUT: Final = timedelta(seconds=60)
"""What a tool gets that names no timeout. This very object: an effector may be told another length for such tools."""
Reconcile = Callable[..., Any]
_FOR_EFFECTS: Final = "idempotent=, reconcile=, retry=, retry_on=, rate=, concurrency= and compensate="
RESULT: Final = "result"
"""The parameter of a compensating tool that is given what the compensated one returned."""


@attrs.frozen
class IntentInfo:
    """The identity of the intent being carried out, injected into a side-effect tool's keyword-only ``intent`` parameter."""

    #: The idempotency key to hand on: the same for every attempt at this effect.
    intent_id: str
    stream: str
    seq: int
    step_index: int
    #: From 1.
    attempt: int

    @property
    def entity_key(self) -> str:
        """The key the agent acts for."""
        return self.stream.partition("-")[2]


@attrs.frozen(eq=False)
class Tool:
    """A registered tool; calling it runs the function itself, unless it has a side effect (S-4.7)."""

    name: str
    description: str
    side_effect: bool
    fn: Callable[..., Any]
    arguments: type[Any]
    #: JSON schema of the arguments, as a provider gets it.
    schema: dict[str, Any]
    returns: Any
    takes_intent: bool
    #: Running it twice with the same intent id does no harm.
    idempotent: bool = False
    #: Wall-clock limit of one attempt.
    timeout: timedelta = DEFAULT_TIMEOUT
    #: Asked after a crash in mid-call whether the effect happened: called as ``look(IntentInfo, **args)``, with all of the
    #: tool's arguments by name; returns what the tool would have returned, or ``None`` when it cannot tell.
    reconcile: Reconcile | None = None
    #: How it is tried again, and how often and how many at once it may be called.
    policies: ToolPolicies = attrs.field(factory=ToolPolicies)
    #: The side-effect tool that undoes what this one did (``ctx.compensate``).
    compensate: Tool | None = None
    #: Names of the parameters a caller may give.
    parameters: frozenset[str] = attrs.field(
        init=False, default=attrs.Factory(lambda self: frozenset(f.name for f in attrs.fields(self.arguments)), takes_self=True)
    )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.side_effect:
            raise WrongToolKind(
                f"{self.name} has a side effect and is not called directly: stage it with ctx.act({self.name!r}, …). "
                f"To test the function itself, call {self.name}.fn(…)."
            )
        return self.fn(*args, **kwargs)


@overload
def tool(fn: F, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    side_effect: bool = False,
    idempotent: bool = False,
    timeout: timedelta = DEFAULT_TIMEOUT,
    reconcile: Reconcile | None = None,
    retry: RetryPolicy | None = None,
    retry_on: type[Exception] | tuple[type[Exception], ...] = (),
    rate: Rate | None = None,
    concurrency: int | None = None,
    compensate: Tool | None = None,
) -> Callable[[F], Tool]: ...
def tool(
    fn: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    side_effect: bool = False,
    idempotent: bool = False,
    timeout: timedelta = DEFAULT_TIMEOUT,
    reconcile: Reconcile | None = None,
    retry: RetryPolicy | None = None,
    retry_on: type[Exception] | tuple[type[Exception], ...] = (),
    rate: Rate | None = None,
    concurrency: int | None = None,
    compensate: Tool | None = None,
) -> Any:
    """Make a tool of a function whose parameters are all annotated.

    ``side_effect=True``: carried out by the effector, never inline. Such a tool may declare a keyword-only
    ``intent: IntentInfo``, and how it is to be called: see ``ToolPolicies`` and docs/tools.md. Raises ``DefinitionError``
    for anything that would only be found out later.
    """
    policies = ToolPolicies(retry, retry_on if isinstance(retry_on, tuple) else (retry_on,), rate, concurrency)

    def make(function: F) -> Tool:
        if not side_effect and (idempotent or reconcile is not None or compensate is not None or policies != ToolPolicies()):
            raise DefinitionError(f"tool {name or function.__name__}: {_FOR_EFFECTS} are for tools with side_effect=True")
        made = _define(function, name, description, side_effect, idempotent, timeout, reconcile)
        if problem := policies.problem() or (_cannot_undo(made, compensate) if compensate is not None else ""):
            raise DefinitionError(f"tool {made.name}: {problem}")
        return attrs.evolve(made, policies=policies, compensate=compensate)

    return make if fn is None else make(fn)


def _define(
    fn: Callable[..., Any], name: str | None, description: str | None, side_effect: bool, idempotent: bool, timeout: timedelta, reconcile: Reconcile | None
) -> Tool:
    label = name or fn.__name__
    if not _NAME.match(label):
        raise DefinitionError(f"Invalid tool name {label!r}: it must match [A-Za-z][A-Za-z0-9_.-]*")
    if problem := not_of_its_type(timeout, side_effect=side_effect, idempotent=idempotent):
        raise DefinitionError(f"tool {label}: {problem}")
    if problem := not_a_function(fn):
        raise DefinitionError(f"tool {label} {problem}")
    hints = get_type_hints(fn, include_extras=True)
    fields: dict[str, Any] = {}
    takes_intent = False
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.name == _INTENT or hints.get(parameter.name) is IntentInfo:
            _check_intent(label, parameter, hints.get(parameter.name), side_effect)
            takes_intent = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(f"tool {label}: {parameter} cannot be put in a schema; name every parameter")
        if parameter.name not in hints:
            raise DefinitionError(f"tool {label}: parameter {parameter.name!r} has no annotation")
        default = attrs.NOTHING if parameter.default is parameter.empty else parameter.default
        annotation = hints[parameter.name]
        fields[parameter.name] = attrs.field(default=default, type=annotation, kw_only=True, converter=_as_float if annotation is float else None)
    if reconcile is not None and (problem := cannot_reconcile(reconcile, {each: hints[each] for each in fields}, IntentInfo)):
        raise DefinitionError(f"tool {label}: {problem}")
    arguments = attrs.make_class(f"{label.replace('.', '_').replace('-', '_')}_arguments", fields, frozen=True, slots=True)
    try:
        schema = msgspec.json.schema(arguments)
        Codec(EventRegistry()).check_type(arguments)
    except (TypeError, LogError) as refused:
        raise DefinitionError(f"tool {label}: {refused}") from refused
    doc = inspect.getdoc(fn) or ""
    returns = hints.get("return", Any)
    return Tool(
        label, description if description is not None else doc, side_effect, fn, arguments, _flat(schema), returns, takes_intent, idempotent, timeout, reconcile
    )


def _cannot_undo(done: Tool, undo: Tool) -> str:
    """Why ``undo`` cannot undo ``done``, or nothing: it can only be given the arguments of the call, and its result."""
    if not isinstance(undo, Tool) or not undo.side_effect:
        return f"compensate= takes a tool with side_effect=True, not {undo!r:.80}"
    missing = sorted(f.name for f in attrs.fields(undo.arguments) if f.default is attrs.NOTHING and f.name not in done.parameters | {RESULT})
    if missing:
        return f"its compensate= tool {undo.name} needs {missing[0]!r}; it is given {', '.join(sorted(done.parameters | {RESULT}))}"
    takes, given = ({f.name: f.type for f in attrs.fields(each.arguments)} for each in (undo, done))
    return cannot_be_given(done.name, undo.name, takes, given, (RESULT, done.returns))


def _check_intent(label: str, parameter: inspect.Parameter, hint: Any, side_effect: bool) -> None:
    if hint is not IntentInfo or parameter.name != _INTENT or parameter.kind is not parameter.KEYWORD_ONLY:
        raise DefinitionError(f"tool {label}: declare the intent as a keyword-only parameter: def {label}(…, *, intent: IntentInfo)")
    if not side_effect:
        raise DefinitionError(f"tool {label} is read-only, so there is no intent to inject; drop the parameter or declare side_effect=True")


def _as_float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """The object schema itself, with its definitions beside it only when they are used."""
    definitions = dict(schema.get("$defs", {}))
    body: dict[str, Any] = definitions.pop(schema["$ref"].rsplit("/", 1)[1]) if "$ref" in schema else schema
    body.pop("title", None)
    body.setdefault("properties", {})
    body.setdefault("additionalProperties", False)
    return body | ({"$defs": definitions} if definitions else {})


class ToolSet:
    """The tools an app knows, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        given = list(tools)
        for each in given:
            self._add(each)
        for each in given:
            self._add_undo(each)

    def add(self, added: Tool) -> None:
        """Register, with the tool that undoes it; a second tool of the same name raises ``DefinitionError``."""
        self._add(added)
        self._add_undo(added)

    def _add_undo(self, added: Tool) -> None:
        if added.compensate is not None and added.compensate.name not in self._tools:
            self.add(added.compensate)

    def _add(self, added: Tool) -> None:
        known = self._tools.setdefault(added.name, added)
        if known is not added:
            raise DefinitionError(
                f"two tools are named {added.name!r}: {known.fn.__module__}.{known.fn.__qualname__} and {added.fn.__module__}.{added.fn.__qualname__}"
            )

    def get(self, name: str) -> Tool | None:
        """The tool, or ``None``."""
        return self._tools.get(name)

    def named(self, name: str) -> Tool:
        """The tool; raises ``UnknownTool`` listing those there are."""
        found = self._tools.get(name)
        if found is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise UnknownTool(f"Unknown tool {name!r}. This app knows: {known}. Add it with App(tools=[…]).")
        return found

    def known(self, used: Tool) -> Tool:
        """``used`` itself; raises ``UnknownTool`` unless it is the one registered under its name: the effector would not find it."""
        if self._tools.get(used.name) is not used:
            raise UnknownTool(f"The tool {used.name!r} of {used.fn.__module__} is not one of this app's. Add it with App(tools=[…]).")
        return used

    def __iter__(self) -> Any:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


def canonical_arguments(codec: Codec, used: Tool, given: str | bytes | Mapping[str, Any] | None, named: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Arguments as plain values and as canonical bytes, checked against the tool's schema (S-5.1).

    ``given`` is JSON text (a provider's tool call, the seed style) or a mapping of Python values. Raises
    ``ArgumentRefused`` naming the parameter.
    """
    try:
        if isinstance(given, str | bytes):
            values = msgspec.json.decode(given or b"{}")
            _refuse_spoofing(used, values)
            bound = msgspec.convert(values, used.arguments)
        else:
            values = {**(given or {}), **named}
            _refuse_spoofing(used, values)
            bound = used.arguments(**values)
        encoded = codec.encode_value(bound, used.arguments)
    except (msgspec.MsgspecError, TypeError, LogError) as problem:
        raise ArgumentRefused(
            f"tool {used.name} refuses its arguments: {str(problem).replace(used.arguments.__name__ + '.', '').replace('__init__()', used.name + '()')}"
        ) from problem
    plain = codec.tree(encoded)
    assert isinstance(plain, dict)
    return plain, encoded


def _refuse_spoofing(used: Tool, values: Any) -> None:
    if not isinstance(values, dict):
        raise ArgumentRefused(f"tool {used.name}: the arguments must be a JSON object, not {values!r:.60}")
    known = used.parameters
    if values.keys() <= known:
        return
    if _INTENT in values and _INTENT not in known:
        raise ArgumentRefused(f"tool {used.name}: {_INTENT!r} is injected by the effector and cannot be supplied as an argument")
    unknown = sorted(map(str, set(values) - known))
    if unknown:
        raise ArgumentRefused(f"tool {used.name} has no parameter {unknown[0]!r}; it takes {', '.join(sorted(known)) or 'none'}")


def bind_arguments(codec: Codec, used: Tool, args: Mapping[str, Any]) -> dict[str, Any]:
    """Python values for calling the tool from the plain ones in the log; raises ``ArgumentRefused``."""
    _refuse_spoofing(used, dict(args))
    try:
        bound = codec.decode_value(codec.encode_value(dict(args), dict[str, Any]), used.arguments)
    except LogError as problem:
        raise ArgumentRefused(f"tool {used.name} refuses its arguments: {problem}") from problem
    return {name: getattr(bound, name) for name in used.parameters}
