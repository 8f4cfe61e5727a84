"""Whatever is done to a store, in whatever order, it answers as the model of dicts does."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.machine import log_machine

SETTINGS = settings(
    max_examples=200,
    stateful_step_count=30,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def test_the_store_answers_as_the_model_does(maker: StoreMaker) -> None:
    run_state_machine_as_test(log_machine(maker), settings=SETTINGS)
