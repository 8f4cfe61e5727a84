"""The triage run in three processes, over a server that crashes twenty times: nothing lost, nothing twice, nothing stuck.

``CHAOS_CRASHES`` and ``CHAOS_SEED`` choose how many crashes and which moments; the seed of a run is printed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from contextlib import closing

import pytest

from examples.triage import app
from intentlog.eventlog import open_log
from tests.acceptance.harness import faults_of, journalled_keys, not_the_same, settled_intents
from tests.acceptance.harness_triage import final_states, world
from tests.eventlog.postgres.chaos.crashing import Crashes, working

CRASHES = int(os.environ.get("CHAOS_CRASHES", "20"))
SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(2**32))
DELIVERIES = 329
#: Few keys at a time, so that a run lasts long enough to crash in.
CONCURRENCY = 2

pytestmark = pytest.mark.timeout(600)


def test_a_server_that_crashes_twenty_times_costs_nothing(server, tmp_path, shared_data):
    print(f"CHAOS_SEED={SEED}")
    moments, crashes, runs, repeated = random.Random(SEED), 0, 0, 0
    while crashes < CRASHES:
        runs += 1
        folder = tmp_path / f"run-{runs}"
        folder.mkdir()
        url = server.create_database()
        with world(folder) as around, closing(open_log(url)) as log:
            more = ("--input", shared_data, "--until-idle", "--concurrency", str(CONCURRENCY))
            with working(url, "examples.triage:app", around.env("any"), *more) as workers:
                crashing = Crashes(server, log, moments)
                while crashes + crashing.count < CRASHES and crashing.crash(lambda: not workers.running()):
                    workers.check()
                ends = workers.ends()
            assert [0, 0, 0] == [ended.code for ended in ends], "\n".join(ended.output for ended in ends)
            crashes += crashing.count
            print(f"run {runs}: {crashing.count} crashes, the log grew again after {[round(each, 2) for each in crashing.silences]} s")
            repeated += nothing_is_lost_or_twice(url, around, crashing.count)
    print(f"{crashes} crashes in {runs} runs; {repeated} requests were repeated, each under its first key")


def nothing_is_lost_or_twice(url, around, crashes: int) -> int:
    """How many requests were made again because a crash lost the record of the first answer."""
    assert [] == faults_of(app, url, DELIVERIES)
    assert [] == not_the_same(app, url)
    states = final_states(url)
    assert (29, DELIVERIES) == (len(states), sum(state.deliveries for state in states.values()))
    chats, effects = Counter(each["key"] for each in around.chats()), Counter(each["key"] for each in around.effects())
    assert journalled_keys(app, url) == set(chats)
    assert settled_intents(app, url) == set(effects) == set(around.ledger())
    again = sum(times - 1 for times in (*chats.values(), *effects.values()))
    # Each of three processes has so many turns and so many effects in flight when the server goes.
    assert again <= crashes * 3 * CONCURRENCY * 2, (chats, effects)
    return again
