"""Processes that share a log's work: evenly, past one that died or stands still, and never twice."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from intentlog.agents import Input
from intentlog.agents.sending import deliver, typed_input
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.errors import LeaseLost
from intentlog.eventlog.log import Appended, AppendRequest, Fence, StreamAppend
from intentlog.eventlog.testing.maker import event
from tests.acceptance import harness_counters as counters
from tests.acceptance.harness import child, decoded, end_of, eventlog, events, faults_of, not_the_same
from tests.eventlog.postgres.chaos.crashing import WORKERS, working
from tests.eventlog.postgres.chaos.gated import app
from tests.eventlog.postgres_reading.helping import until

#: Long enough that a busy machine renews it in time.
LEASE_MS = 3_000
KEYS, INPUTS = 150, 600
NOTES = [f"k{number}" for number in range(5)]

pytestmark = pytest.mark.timeout(200)


def send(log, of, inputs):
    pairs = [typed_input(of, each) for each in inputs]
    deliver(log, pairs, [each.id for each in inputs])


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_the_keys_of_a_process_that_stands_still_or_died_are_another_one_s_after_the_lease(how, url, log, tmp_path):
    def start(name: str):
        command = eventlog("run", "tests.eventlog.postgres.chaos.gated:app", "--log", url, "--lease-ms", str(LEASE_MS))
        return child(command, {"GATES": str(tmp_path), "GATE": name})

    def completed() -> list:
        return list(log.read_all(types=["activation.completed"]))

    send(log, app, [Input("notes", key, "x", key) for key in NOTES])
    (tmp_path / "second-open").touch()
    with start("first") as first:
        until(lambda: len(_leases(log)) == len(NOTES) and (tmp_path / "first-reached").exists(), "the first process holds all keys, and stands at the gate")
        first.send_signal(how)
        with start("second") as second:
            leases = _leases(log)
            until(lambda: len(completed()) == len(NOTES), "the second process has taken over")
            taken = completed()
            assert {second.pid} == {decoded(app, each).output for each in taken}
            assert all(each.recorded_at >= leases[each.stream] for each in taken), "not before the lease was over"
            assert max(each.recorded_at for each in taken) < max(leases.values()) + 20 * SECOND
            last = log.last_position()
            if how == signal.SIGSTOP:
                (tmp_path / "first-open").touch()
                first.send_signal(signal.SIGCONT)
                first.terminate()
                ended = end_of(first)
                assert 0 == ended.code, ended.output
            second.terminate()
            assert 0 == end_of(second).code
    assert last == log.last_position(), [decoded(app, each) for each in log.read_all(after=last)]
    assert [] == faults_of(app, url, len(NOTES))
    assert [] == not_the_same(app, url)


def _leases(log) -> dict[str, int]:
    return dict(log._database.rows("SELECT name, lease_until FROM schedule WHERE owner IS NOT NULL AND queue = 'turn'"))


def test_a_claim_that_ran_out_and_was_given_away_can_do_nothing_any_more(log):
    now = log.clock()
    log.schedule.wake("q", "a-1", now)
    (old,) = log.schedule.claim_due("q", "old", now=now, until=now + 1_000, limit=1)
    (new,) = log.schedule.claim_due("q", "new", now=now + 2_000, until=now + 60 * SECOND, limit=1)
    assert new.token > old.token

    def append(token: int, *, release: bool = False):
        request = AppendRequest([StreamAppend("a-1", [event()], log.head("a-1"))], [Fence("q", "a-1", token, release)])
        (outcome,) = log.append_batch([request])
        return outcome

    assert isinstance(append(old.token), LeaseLost)
    assert [old] == log.schedule.renew([old], until=now + 90 * SECOND)
    log.schedule.release([old])
    assert isinstance(append(old.token, release=True), LeaseLost)
    assert isinstance(append(new.token, release=True), Appended)
    assert isinstance(append(new.token), LeaseLost)
    assert 0 == log.head("a-1")


def test_three_processes_share_the_load(url, log, tmp_path):
    lines = tmp_path / "lines.txt"
    with working(url, "tests.acceptance.harness_counters:app", {"COUNTERS_FILE": str(lines)}, "--concurrency", "8") as workers:
        send(log, counters.app, [Input("counter", f"k{number % KEYS}", counters.Bump(number), f"bump-{number}") for number in range(INPUTS)])
        until(lambda: len(list(log.read_all(types=["activation.completed"], payloads=False))) == INPUTS, "all inputs are done")
        workers.stop()
        ends = workers.ends()
    assert [0] * WORKERS == [ended.code for ended in ends], "\n".join(ended.output for ended in ends)
    assert [] == faults_of(counters.app, url, INPUTS)
    deposits = [line.split() for line in lines.read_text("utf-8").splitlines() if line.startswith("deposit")]
    assert dict.fromkeys(range(INPUTS), 1) == Counter(int(line[2]) for line in deposits)
    turns = Counter(decoded(counters.app, each).process for each in events(url, "counter.bumped"))
    effects = Counter(int(line[3]) for line in deposits)
    for work, by_process in (("turns", turns), ("effects", effects)):
        assert WORKERS == len(by_process) and min(by_process.values()) > INPUTS / 10, f"{work}: {by_process}"
