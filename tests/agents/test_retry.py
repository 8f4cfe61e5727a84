from __future__ import annotations

from datetime import timedelta

import pytest

from intentlog.agents import agent
from intentlog.agents.errors import ArgumentRefused, DefinitionError, ImpossibleHistory, ModelFailed, TurnTimedOut
from intentlog.agents.retry import RetryPolicy
from intentlog.eventlog.errors import LogUnavailable, Unencodable


def test_the_wait_doubles_up_to_the_longest():
    policy = RetryPolicy(max_attempts=99, first=timedelta(seconds=1), longest=timedelta(seconds=10))
    assert [1, 2, 4, 8, 10, 10] == [policy.delay(n).total_seconds() for n in range(1, 7)]
    assert timedelta(seconds=10) == policy.delay(10_000)


@pytest.mark.parametrize("error", [ModelFailed("x"), TurnTimedOut("x"), ValueError("x"), LogUnavailable("x")], ids=lambda e: type(e).__name__)
def test_what_may_heal_is_tried_again_until_the_last_attempt(error):
    policy = RetryPolicy(max_attempts=3, first=timedelta(seconds=2))
    assert [102 * 10**6, 104 * 10**6, None] == [policy.retry_at(n, error, 100 * 10**6) for n in (1, 2, 3)]


@pytest.mark.parametrize("error", [ArgumentRefused("x"), ImpossibleHistory("x"), Unencodable("x")], ids=lambda e: type(e).__name__)
def test_what_cannot_heal_is_not_tried_again(error):
    assert RetryPolicy().retry_at(1, error, 0) is None


def test_one_attempt_means_none_again():
    assert RetryPolicy(max_attempts=1).retry_at(1, ValueError(), 0) is None


def test_no_attempt_at_all_is_no_policy():
    with pytest.raises(ValueError, match="max_attempts"):
        RetryPolicy(max_attempts=0)


NO_POLICIES = [
    {"max_attempts": "3"},
    {"max_attempts": 2.5},
    {"max_attempts": True},
    {"first": 5},
    {"first": timedelta(seconds=-1)},
    {"longest": 60},
    {"longest": None},
    {"factor": "2"},
    {"factor": 0},
    {"factor": float("nan")},
    {"factor": float("inf")},
]


@pytest.mark.parametrize("given", NO_POLICIES, ids=str)
def test_a_field_that_could_only_fail_after_an_attempt_is_refused_where_it_stands_and_named(given):
    ((name, value),) = given.items()
    with pytest.raises(DefinitionError) as refused:
        RetryPolicy(**given)
    assert f"RetryPolicy({name}=…) takes" in str(refused.value)
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize("factor", [1e300, 10**400, 1e-300])
def test_no_factor_makes_a_wait_that_no_timedelta_holds(factor):
    policy = RetryPolicy(factor=factor, first=timedelta(seconds=2))
    assert policy.delay(2) <= policy.delay(1) if factor < 1 else policy.delay(2) == policy.longest


def test_an_agent_takes_a_policy_and_nothing_else():
    async def code(ctx: object) -> None: ...

    with pytest.raises(DefinitionError, match="retry= takes a RetryPolicy"):
        agent("a", retry=3)(code)  # type: ignore[arg-type]
