"""A long queue makes a state large: keeping copies of it costs less than folding what lies between them, and so does looking anywhere.

Times are of this process' own work, for the machine may be doing others' as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.replay.bisect import bisect
from intentlog.replay.copying import Copier
from intentlog.replay.expressions import parse_expression
from intentlog.replay.fold import state_at
from intentlog.replay.paths import parse_path
from intentlog.replay.walking import WORTH, Walk
from intentlog.replay.why import why
from tests.replay.long_history import record_backlog
from tests.replay.world import STREAM, app_of, paying

INPUTS = 1_000
APP = app_of(paying)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EventLog]:
    log = open_log(f"sqlite:///{tmp_path_factory.mktemp('backlog')}/log.db")
    record_backlog(log, APP, INPUTS)
    yield log
    log.close()


def seconds(look: Callable[[], Any], tries: int = 2) -> float:
    """The best of two: what it takes when nothing else gets in its way."""
    return min(_once(look) for _ in range(tries))


def takes_less_than(times: int, log: EventLog, look: Callable[[], Any]) -> bool:
    """Whether ``look`` takes less than so many folds; of three pairs one is enough, for the machine may become slower between the two of a pair."""
    return any(times * seconds(lambda: state_at(log, APP, STREAM)) > seconds(look) for _ in range(3))


def _once(look: Callable[[], Any]) -> float:
    begun = time.process_time()
    look()
    return time.process_time() - begun


def test_no_more_is_copied_than_the_folding_is_worth(log):
    walk = Walk(log, APP, STREAM)
    largest = Copier()
    largest.copy(state_at(log, APP, STREAM, INPUTS))
    assert largest.weight > 10 * INPUTS
    assert 0 < walk.copied <= WORTH * (walk.head + 1) + largest.weight


def test_any_place_is_what_a_fresh_fold_gives(log):
    walk = Walk(log, APP, STREAM)
    for version in (walk.head - 40, INPUTS + 900, INPUTS - 1, 9_999):
        assert state_at(log, APP, STREAM, version) == walk.at(version)


@pytest.mark.parametrize("trusted", [True, False])
def test_where_a_condition_changes_is_found_in_a_few_times_what_folding_takes(log, trusted):
    condition = parse_expression("st.refunded_cents > 9000")
    found = bisect(log, APP, STREAM, condition, trusted=trusted)
    assert found.version is not None
    before, after = (state_at(log, APP, STREAM, version).state.refunded_cents for version in (found.version - 1, found.version))
    assert before <= 9000 < after
    assert takes_less_than(12, log, lambda: bisect(log, APP, STREAM, condition, trusted=trusted))


def test_why_something_is_so_is_told_in_a_few_times_what_folding_takes(log):
    assert takes_less_than(12, log, lambda: why(log, APP, STREAM, parse_path("refunded_cents")))
