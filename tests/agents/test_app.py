from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import App, IntentInfo, agent, facts, tool
from intentlog.agents.app import runtime_codec
from intentlog.agents.errors import DefinitionError
from intentlog.eventlog.errors import RegistrationError
from intentlog.eventlog.registry import event
from tests.agents.world import Asked, Ctx, Paid


@event("found.here")
class FoundHere:
    x: int


@tool(side_effect=True)
async def found_tool(x: int, *, intent: IntentInfo) -> None: ...


async def code(ctx: Ctx, asked: Asked) -> None: ...


def test_tools_and_events_are_found_through_the_agents_modules():
    app = App(agents=[agent("a")(code)])
    assert app.tools.named("found_tool") is found_tool
    assert {"found.here", "order.asked", "order.paid"} <= {entry.name for entry in app.registry}
    assert app.registry.get("input.received") is not None


def test_an_event_is_also_found_where_an_agent_takes_it():
    scope: dict[str, Any] = {"Asked": Asked, "__name__": "elsewhere"}
    exec("async def code(ctx, asked: Asked): ...", scope)
    del scope["Asked"]
    scope["code"].__annotations__ = {"asked": Asked}
    assert App(agents=[agent("a")(scope["code"])]).registry.get("order.asked") is not None


def test_what_lives_elsewhere_is_listed():
    @event("from.elsewhere")
    class Elsewhere:
        x: int

    @tool
    def reading() -> int:
        return 1

    app = App(agents=[agent("a")(code)], tools=[reading], events=[Elsewhere, Asked])
    assert app.tools.named("reading") is reading
    assert Elsewhere is app.codec.class_of("from.elsewhere")


def test_two_tools_of_one_name_are_refused():
    @tool(name="found_tool")
    def other() -> None: ...

    with pytest.raises(DefinitionError, match="two tools are named 'found_tool'"):
        App(agents=[agent("a")(code)], tools=[other])


def test_two_agents_of_one_name_are_refused_and_the_same_one_twice_is_one():
    one = agent("a")(code)
    assert ["a"] == list(App(agents=[one, one]).agents)
    with pytest.raises(DefinitionError, match="two agents are named 'a'"):
        App(agents=[one, agent("a")(code)])


def test_two_events_of_one_name_are_refused():
    @event("order.paid")
    class OtherPaid:
        x: int

    with pytest.raises(RegistrationError, match=r"order\.paid"):
        App(agents=[agent("a")(code)], events=[OtherPaid])


def test_a_name_of_the_runtimes_own_cannot_be_taken():
    @event("intent.staged")
    class Mine:
        x: int

    with pytest.raises(RegistrationError, match=r"intent\.staged"):
        App(agents=[agent("a")(code)], events=[Mine])


@pytest.mark.parametrize("agents", [[], [code], ["a"]], ids=["none", "a function", "a name"])
def test_an_app_is_made_of_agents(agents):
    with pytest.raises(DefinitionError):
        App(agents=agents)


def test_an_unknown_agent_is_named_with_the_known_ones():
    with pytest.raises(DefinitionError, match=r"no agent 'b'; it has: a"):
        App(agents=[agent("a")(code)]).agent("b")


def test_the_runtimes_own_codec_reads_the_runtimes_events_and_no_others():
    codec = runtime_codec()
    assert all(codec.knows(fact) for fact in facts.FACTS)
    assert not codec.knows(Paid)
