"""Show 8: two processes of `eventlog run` on one file: every key's turns serial, nothing lost, nothing twice."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from tests.acceptance.harness import child, decoded, end_of, eventlog, events, faults_of, folded, longest_silence, opened
from tests.acceptance.harness_counters import app

KEYS, INPUTS = 200, 2_000
#: Of the 2,000 inputs; far below half, for a machine may favour one of two processes.
SHARE = 100


@pytest.fixture(scope="module")
def ran(tmp_path_factory, shared_store):
    """URL of the log, and the lines both processes left, in the order in which they were written."""
    folder = tmp_path_factory.mktemp("two")
    inputs, lines, url = folder / "bumps.jsonl", folder / "lines.txt", shared_store.url(folder / "log")
    inputs.write_text("".join(json.dumps({"key": f"k{number % KEYS}", "number": number}) + "\n" for number in range(INPUTS)), "utf-8")
    command = eventlog("run", "tests.acceptance.harness_counters:app", "--log", url, "--input", inputs, "--until-idle")
    env = {"COUNTERS_FILE": str(lines)}
    with child(command, env) as one, child(command, env) as other:
        ends = [end_of(one), end_of(other)]
    assert [0, 0] == [ended.code for ended in ends], "\n".join(ended.output for ended in ends)
    return url, [line.split() for line in lines.read_text("utf-8").splitlines()]


def test_nothing_is_lost(ran):
    url, _ = ran
    assert [] == faults_of(app, url, INPUTS)
    expected = {f"counter-k{key}": tuple(range(key, INPUTS, KEYS)) for key in range(KEYS)}
    assert expected == {stream: state.state.numbers for stream, state in folded(app, url).items()}


def test_nothing_waits_for_a_lease_to_run_out(ran):
    assert longest_silence(ran[0]) < 10  # a lease is 30 s


def test_nothing_happens_twice(ran):
    url, lines = ran
    deposits = Counter(int(line[2]) for line in lines if line[0] == "deposit")
    assert dict.fromkeys(range(INPUTS), 1) == deposits
    assert {1: INPUTS} == Counter(Counter(decoded(app, event).intent_id for event in events(url, "intent.attempted")).values())
    assert {1: INPUTS} == Counter(Counter((event.stream, decoded(app, event).input_id) for event in events(url, "input.received")).values())


def test_the_turns_of_a_key_never_overlap(ran):
    _, lines = ran
    under_way: dict[str, list[str]] = {}
    overlaps = []
    for word, key, *rest in lines:
        if word == "begin":
            if key in under_way:
                overlaps.append((key, under_way[key], rest))
            under_way[key] = rest
        elif word == "end" and under_way.pop(key, None) != rest:
            overlaps.append((key, word, rest))
    assert ([], {}) == (overlaps, under_way)


def test_the_activations_of_a_key_stand_one_after_the_other_in_its_stream(ran):
    url, _ = ran
    arrivals = {"input.received", "intent.attempted", "intent.settled"}
    with opened(url) as log:
        for stream in log.streams():
            read = list(log.read(stream))
            assert list(range(len(read))) == [event.version for event in read]
            owned = [event for event in read if event.type not in arrivals]
            kinds = ["tool_call.cached", "counter.bumped", "intent.staged", "activation.suspended", "tool_call.cached", "activation.completed"]
            assert kinds * (INPUTS // KEYS) == [event.type for event in owned]
            seqs = [decoded(app, event).seq for event in owned if event.type != "counter.bumped"]
            assert sorted(seqs) == seqs


def test_both_processes_did_a_share_of_the_turns_and_of_the_effects(ran):
    url, lines = ran
    shares: dict[str, Counter[int]] = defaultdict(Counter)
    shares["turns"].update(decoded(app, event).process for event in events(url, "counter.bumped"))
    shares["effects"].update(int(line[3]) for line in lines if line[0] == "deposit")
    shares["settlements"].update(hash(decoded(app, event).settled_by) for event in events(url, "intent.settled"))
    for work, by_process in shares.items():
        assert 2 == len(by_process) and min(by_process.values()) >= SHARE, f"{work}: {by_process}"
