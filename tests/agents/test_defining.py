from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from intentlog.agents import agent
from intentlog.agents.errors import DefinitionError
from tests.agents.world import Account, Asked, Paid


async def plain(ctx: Any) -> str:
    return "x"


def test_an_agent_holds_its_policies_and_can_still_be_called():
    made = agent("a.b_2", state=Account, wait_timeout=timedelta(seconds=2), intent_ttl=timedelta(milliseconds=3))(plain)
    assert ("a.b_2", Account, 2_000_000, 3_000, False, ()) == (made.name, made.state, made.wait_timeout_us, made.intent_ttl_us, made.takes_input, made.inputs)
    assert "x" == asyncio.run(made(None))  # type: ignore[arg-type]


def test_the_second_parameter_says_what_the_agent_takes():
    @agent("one")
    async def one(ctx: Any, asked: Asked) -> None: ...

    @agent("two")
    async def two(ctx: Any, asked: Asked | Paid) -> None: ...

    @agent("three")
    async def three(ctx: Any, asked: Any, more: int = 3) -> None: ...

    assert [(Asked,), (Asked, Paid), (Any,)] == [each.inputs for each in (one, two, three)]


async def none() -> None: ...
async def too_many(ctx: Any, one: Any, other: Any) -> None: ...
async def unknown(ctx: Any, asked: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def blocking(ctx: Any) -> None: ...


@pytest.mark.parametrize("fn", [none, too_many, unknown, blocking], ids=lambda f: f.__name__)
def test_a_function_that_cannot_be_an_agent_is_refused(fn):
    with pytest.raises(DefinitionError, match="agent a"):
        agent("a")(fn)


@pytest.mark.parametrize(
    "options",
    [{"state": int}, {"on_parked": "shrug"}, {"turn_timeout": timedelta(0)}, {"wait_timeout": timedelta(seconds=-1)}, {"intent_ttl": timedelta(0)}],
    ids=str,
)
def test_a_policy_that_makes_no_sense_is_refused(options):
    with pytest.raises(DefinitionError):
        agent("a", **options)
