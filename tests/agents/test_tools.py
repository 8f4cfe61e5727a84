from __future__ import annotations

import functools
import inspect
import json
import re
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any, Literal

import attrs
import pytest

from intentlog.agents import IntentInfo, ToolSet, tool
from intentlog.agents.app import runtime_codec
from intentlog.agents.errors import ArgumentRefused, DefinitionError, UnknownTool, WrongToolKind
from intentlog.agents.tools import bind_arguments, canonical_arguments

CODEC = runtime_codec()


@attrs.frozen
class Line:
    name: str
    cents: int


@tool(side_effect=True, idempotent=True, timeout=timedelta(seconds=5))
async def ship(order: str, lines: list[Line], express: bool = False, weight: float = 1.5, *, intent: IntentInfo) -> str:
    """Send it off."""
    return intent.intent_id


@tool(name="shop.look-up", description="What is there.")
def look(what: str | None = None, limit: int = 10) -> list[str]:
    return [what or ""] * limit


def test_a_schema_is_made_of_the_annotations_and_never_shows_the_intent():
    assert {"order", "lines", "express", "weight"} == set(ship.schema["properties"])
    assert ["order", "lines"] == ship.schema["required"]
    assert ship.schema["additionalProperties"] is False
    assert "intent" not in json.dumps(ship.schema)
    assert ("ship", "Send it off.", True, True) == (ship.name, ship.description, ship.side_effect, ship.takes_intent)
    assert ("shop.look-up", "What is there.", False, False) == (look.name, look.description, look.side_effect, look.takes_intent)


def test_a_tool_without_parameters_has_an_empty_schema():
    @tool
    def ping() -> str:
        return "pong"

    assert {"type": "object", "properties": {}, "required": [], "additionalProperties": False} == ping.schema
    assert ({}, "pong") == (canonical_arguments(CODEC, ping, None, {})[0], ping())


def test_json_and_python_arguments_give_the_same_plain_values_and_bytes():
    text = '{"lines": [{"cents": 3, "name": "a"}], "order": "o", "weight": 2}'
    from_json = canonical_arguments(CODEC, ship, text, {})
    from_bytes = canonical_arguments(CODEC, ship, text.encode(), {})
    from_python = canonical_arguments(CODEC, ship, None, {"order": "o", "lines": [Line("a", 3)], "weight": 2})
    from_mapping = canonical_arguments(CODEC, ship, {"order": "o", "lines": [Line("a", 3)], "weight": 2.0}, {})
    assert from_json == from_bytes == from_python == from_mapping
    assert {"order": "o", "lines": [{"name": "a", "cents": 3}], "express": False, "weight": 2.0} == from_json[0]


def test_the_tool_is_called_with_what_its_annotations_say():
    plain, _ = canonical_arguments(CODEC, ship, '{"order": "o", "lines": [{"name": "a", "cents": 3}]}', {})
    assert {"order": "o", "lines": [Line("a", 3)], "express": False, "weight": 1.5} == bind_arguments(CODEC, ship, plain)


@pytest.mark.parametrize(
    "given, named, said",
    [
        (None, {"order": 1, "lines": []}, "order"),
        (None, {"order": "o", "lines": [Line("a", "3")]}, "lines[0].cents"),  # type: ignore[arg-type]
        ('{"order": "o", "lines": [{"name": "a", "cents": "3"}]}', {}, "lines[0].cents"),
        ('{"order": "o"}', {}, "lines"),
        (None, {"order": "o"}, "lines"),
        ('{"order": "o", "lines": [], "colour": "red"}', {}, "no parameter 'colour'"),
        (None, {"order": "o", "lines": [], "express": 1}, "express"),
        ("[]", {}, "JSON object"),
        ("", {}, "order"),
        ("{", {}, "ship"),
        (None, {"order": "o", "lines": [], "weight": object()}, "weight"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_the_parameter_is_named(given, named, said):
    with pytest.raises(ArgumentRefused, match=re.escape(said)) as refused:
        canonical_arguments(CODEC, ship, given, named)
    assert "ship" in str(refused.value)
    assert "_arguments" not in str(refused.value)


@pytest.mark.parametrize("given", ['{"order": "o", "lines": [], "intent": {"intent_id": "mine"}}', {"order": "o", "lines": [], "intent": None}])
def test_an_intent_cannot_be_supplied_by_whoever_gives_the_arguments(given):
    with pytest.raises(ArgumentRefused, match="injected by the effector"):
        canonical_arguments(CODEC, ship, given, {})
    with pytest.raises(ArgumentRefused, match="injected by the effector"):
        bind_arguments(CODEC, ship, {"order": "o", "lines": [], "intent": None})


def test_arguments_in_the_log_that_no_longer_fit_are_refused():
    with pytest.raises(ArgumentRefused, match="order"):
        bind_arguments(CODEC, ship, {"order": 1, "lines": []})


def declare_intent_positionally() -> Any:
    @tool(side_effect=True)
    def bad(intent: IntentInfo) -> None: ...


def declare_intent_under_another_name() -> Any:
    @tool(side_effect=True)
    def bad(*, info: IntentInfo) -> None: ...


def declare_intent_with_another_type() -> Any:
    @tool(side_effect=True)
    def bad(*, intent: str) -> None: ...


def declare_intent_without_a_type() -> Any:
    @tool(side_effect=True)
    def bad(*, intent) -> None: ...


def declare_intent_on_a_read() -> Any:
    @tool
    def bad(*, intent: IntentInfo) -> None: ...


def leave_an_annotation_out() -> Any:
    @tool
    def bad(x) -> None: ...


def take_any_number() -> Any:
    @tool
    def bad(*xs: int) -> None: ...


def take_any_name() -> Any:
    @tool
    def bad(**xs: int) -> None: ...


def take_a_place() -> Any:
    @tool
    def bad(x: int, /) -> None: ...


def take_what_cannot_be_recorded() -> Any:
    @tool
    def bad(x: re.Pattern[str]) -> None: ...


def be_named_oddly() -> Any:
    @tool(name="no spaces")
    def bad() -> None: ...


def have_no_time() -> Any:
    @tool(timeout=timedelta(0))
    def bad() -> None: ...


def be_an_idempotent_read() -> Any:
    @tool(idempotent=True)
    def bad() -> None: ...


def reconcile_a_read() -> Any:
    @tool(reconcile=lambda info: None)
    def bad() -> None: ...


def be_a_generator() -> Any:
    @tool(side_effect=True)
    def bad(x: int) -> Any:
        yield x


def be_an_async_generator() -> Any:
    @tool
    async def bad(x: int) -> Any:
        yield x


def give_seconds_for_a_time() -> Any:
    @tool(timeout=5)  # type: ignore[call-overload]
    def bad() -> None: ...


def say_no_in_words() -> Any:
    @tool(side_effect=True, idempotent="no")  # type: ignore[call-overload]
    def bad() -> None: ...


def reconcile_by_generator() -> Any:
    def look(intent: IntentInfo) -> Any:
        yield intent

    @tool(side_effect=True, reconcile=look)
    def bad() -> None: ...


DECLARATIONS = [
    value
    for value in list(globals().values())
    if getattr(value, "__code__", None)
    and "bad" in value.__code__.co_varnames + value.__code__.co_cellvars + value.__code__.co_names
    and not value.__name__.startswith("test")
]


@pytest.mark.parametrize("declare", DECLARATIONS, ids=lambda f: f.__name__)
def test_a_tool_that_could_only_fail_later_fails_where_it_is_declared(declare):
    with pytest.raises(DefinitionError):
        declare()


def test_there_are_as_many_bad_declarations_as_are_written_above():
    assert 19 == len(DECLARATIONS)


def by_keyword(n: int, *, intent: IntentInfo) -> Any: ...
def without_arguments(intent: IntentInfo) -> Any: ...
def without_the_intent(n: int) -> Any: ...
def the_other_way_round(n: int, intent: IntentInfo) -> Any: ...
def by_another_name(intent: IntentInfo, count: int) -> Any: ...
def with_one_more(intent: IntentInfo, n: int, more: int) -> Any: ...
def of_the_id(intent_id: str, n: int) -> Any: ...


class Sought:
    def method(self, intent: IntentInfo, n: int) -> Any: ...

    async def __call__(self, intent: IntentInfo, n: int) -> Any: ...


WRONG = [by_keyword, without_arguments, without_the_intent, the_other_way_round, by_another_name, with_one_more, of_the_id, Sought.method, "look", ship]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda given: getattr(given, "__name__", type(given).__name__))
def test_a_reconciler_that_could_not_be_called_is_refused_with_the_signature_that_can(wrong):
    """Elsewhere that was found out after a crash in mid-call, when nobody could be asked any more."""

    def pay(n: int) -> None: ...

    with pytest.raises(DefinitionError, match=re.escape("tool pay: ")) as refused:
        tool(side_effect=True, reconcile=wrong)(pay)
    assert "(intent: IntentInfo, n: int)" in str(refused.value)


RIGHT = {
    "named otherwise": lambda info, n: None,
    "anything": lambda *args, **named: None,
    "with more that it need not get": lambda intent, n, bank="b": None,
    "a method": Sought().method,
    "an object": Sought(),
    "bound in part": functools.partial(lambda bank, intent, n: None, "b"),
}


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_a_reconciler_is_whatever_can_be_called_with_the_intent_and_the_arguments_by_name(right):
    @tool(side_effect=True, reconcile=right)
    def pay(n: int) -> None: ...

    assert right is pay.reconcile


@pytest.mark.parametrize(
    "kind, undo, said",
    [
        (int, "n: str", "'n' as a str, and pay takes it as an int"),
        (str, "result: int", "'result' as an int, and pay returns a str"),
    ],
)
def test_an_undoing_tool_that_takes_what_was_done_as_something_else_is_refused(kind, undo, said):
    def pay(n: int) -> Any: ...

    def unpay() -> None: ...

    name, _, annotation = undo.partition(": ")
    wanted = {"str": str, "int": int}[annotation]
    unpay.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)])  # type: ignore[attr-defined]
    unpay.__annotations__ = {name: wanted}
    pay.__annotations__ = {"n": int, "return": kind}
    with pytest.raises(DefinitionError, match=re.escape(said)):
        tool(side_effect=True, compensate=tool(side_effect=True)(unpay))(pay)


def test_calling_a_read_runs_it_and_calling_a_side_effect_says_what_to_do_instead():
    assert ["a", "a"] == look("a", limit=2)
    with pytest.raises(WrongToolKind, match=r"ctx\.act\('ship'"):
        ship(order="o", lines=[])


def test_richer_types_reach_the_tool_as_they_are():
    @tool
    def typed(amount: Decimal, id: uuid.UUID, size: Literal["s", "m"], names: tuple[str, ...] = ()) -> None: ...

    given = {"amount": Decimal("1.10"), "id": uuid.UUID(int=7), "size": "m", "names": ("a",)}
    plain, _ = canonical_arguments(CODEC, typed, None, given)
    assert given == bind_arguments(CODEC, typed, plain)


def test_two_tools_of_one_name_are_refused_and_the_same_tool_twice_is_one():
    @tool(name="ship", side_effect=True)
    def other() -> None: ...

    tools = ToolSet([ship, look])
    tools.add(ship)
    assert 2 == len(tools)
    with pytest.raises(DefinitionError, match="two tools are named 'ship'"):
        tools.add(other)


def test_an_unknown_tool_is_named_with_the_known_ones():
    tools = ToolSet([ship, look])
    assert tools.get("x") is None
    with pytest.raises(UnknownTool, match=r"Unknown tool 'x'. This app knows: ship, shop.look-up"):
        tools.named("x")


def test_an_intent_info_tells_the_key():
    assert "acct-42" == IntentInfo("i", "refunds-acct-42", 0, 1, 1).entity_key
