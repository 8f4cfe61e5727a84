"""Show 3: killed fifty times, the run ends where an unkilled one ends, and every provider call it repeated is accounted for.

``TRIAGE_KILLS`` and ``TRIAGE_SEED`` choose how many kills and which moments; the seed of a run is printed.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from examples.triage import app
from intentlog.agents import WorkerSettings
from tests.acceptance.harness import faults_of, not_the_same
from tests.acceptance.harness_triage import Life, account_for, final_states, live, triage, world
from tests.stores import part_of

KILLS = int(os.environ.get("TRIAGE_KILLS", "50"))
SEED = int(os.environ.get("TRIAGE_SEED") or random.SystemRandom().randrange(2**32))


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory, shared_data, shared_store):
    """Seconds, ledger and final states of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("unkilled")
    url = shared_store.url(folder / "log")
    with world(folder) as around:
        began = time.monotonic()
        ended = triage(url, shared_data, around)
        seconds = time.monotonic() - began
        assert 0 == ended.code, ended.output
        return seconds, around.ledger(), final_states(url)


@pytest.mark.timeout(600)
def test_killed_at_random_moments_it_ends_as_if_nothing_had_happened(tmp_path, shared_data, unkilled, shared_store):
    seconds, ledger, states = unkilled
    wanted = len(part_of(shared_store, range(KILLS), 3))
    moments = random.Random(SEED)
    print(f"TRIAGE_SEED={SEED}; an unkilled run takes {seconds:.2f} s")
    kills = runs = lost_answers = lost_outcomes = 0
    while kills < wanted:
        runs += 1
        folder = tmp_path / f"run-{runs}"
        folder.mkdir()
        url = shared_store.url(folder / "log")
        lives: list[Life] = []
        with world(folder) as around:
            while not lives or lives[-1].killed:
                kill_after = moments.uniform(0.05, seconds) if kills < wanted else None
                life, ended = live(shared_store, url, shared_data, around, f"run-{runs}/life-{len(lives) + 1}", kill_after)
                assert life.killed or 0 == ended.code, ended.output
                kills += life.killed
                lives.append(life)
            account = account_for(lives, around.chats(), around.effects())
            print(
                f"run {runs}: {len(lives)} lives; {account.chats} model requests, {account.repeated_chats} repeated after {dict(account.lost_answers)}; "
                f"{account.effects} effect requests, {account.repeated_effects} repeated after {dict(account.lost_outcomes)}"
            )
            assert [] == account.faults
            assert all(len(keys) <= min(WorkerSettings().concurrency, len(states)) for keys in account.lost_answers.values())
            assert ledger == around.ledger()
        assert [] == faults_of(app, url, 329)
        assert [] == not_the_same(app, url)
        assert states == final_states(url)
        lost_answers += account.repeated_chats
        lost_outcomes += account.repeated_effects
    print(f"{kills} kills in {runs} runs: {lost_answers} model calls and {lost_outcomes} effect calls were repeated, each after the one kill that lost it")
