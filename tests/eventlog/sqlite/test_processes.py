"""Real processes on one file: two that race, and one that is killed in the middle of its writes."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import NO_STREAM

RACER = """
import sys
from intentlog.eventlog.errors import WrongExpectedVersion
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import Appended, AppendRequest, StreamAppend
from intentlog.eventlog.opening import open_log
url, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
log, new_id, heads = open_log(url), id_maker(), {f"race-{each}": -1 for each in range(4)}
print("ready", flush=True)
sys.stdin.readline()
lost = 0
for turn in range(rounds):
    stream = f"race-{turn % 4}"
    while True:
        event = NewEvent(new_id(), "won", 1, f"{name} {turn}".encode())
        (outcome,) = log.append_batch([AppendRequest([StreamAppend(stream, [event], heads[stream])])])
        if isinstance(outcome, Appended):
            heads[stream] += 1
            break
        assert isinstance(outcome, WrongExpectedVersion), outcome
        assert [each.version for each in outcome.events] == list(range(heads[stream] + 1, outcome.actual + 1))
        heads[stream] = outcome.actual
        lost += 1
log.close()
print(lost)
"""


def test_two_processes_on_one_file_lose_no_version_and_double_none(tmp_path: Path) -> None:
    url, rounds = f"sqlite:///{tmp_path}/log.db", 400
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, url, name, str(rounds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    lost_races = sum(int(racer.communicate(timeout=60)[0]) for racer in racers)
    assert lost_races > 0, "the two never met, so nothing was shown"
    with closing(open_log(url, create=False)) as log:
        found = list(log.read_all())
        for stream in log.streams():
            assert [each.version for each in log.read(stream)] == list(range(2 * rounds // 4))
    assert [each.position for each in found] == list(range(1, 2 * rounds + 1))
    assert Counter(each.data for each in found) == Counter(f"{name} {turn}".encode() for name in ("left", "right") for turn in range(rounds))


BATCHER = """
import sys
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.log import AppendRequest, StreamAppend, Wake
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
log, new_id, content = open_log(sys.argv[1]), id_maker(), b"x" * 500
number = log.last_position()
while True:
    number += 1
    log.append_batch([
        AppendRequest([StreamAppend(f"kill-{each}", [NewEvent(new_id(), f"batch.{number}", 1, content)] * 1, ANY, [Wake("turns", number)])])
        for each in range(200)
    ])
    print(number, flush=True)
"""


def test_a_kill_in_the_middle_leaves_whole_batches_or_nothing(tmp_path: Path) -> None:
    path, chance = tmp_path / "log.db", random.Random(7)
    acknowledged: set[str] = set()
    for _ in range(20):
        child = subprocess.Popen([sys.executable, "-c", BATCHER, f"sqlite:///{path}"], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        acknowledged.add(f"batch.{child.stdout.readline().strip()}")
        time.sleep(chance.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        acknowledged |= {f"batch.{line.strip()}" for line in child.stdout.readlines() if line.endswith("\n")}
        child.wait()
        child.stdout.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with closing(open_log(f"sqlite:///{path}", create=False)) as log:
        sizes = Counter(each.type for each in log.read_all())
        assert set(sizes.values()) == {200}
        assert acknowledged <= set(sizes), "every batch that was acknowledged is there"
        heads = {log.head(f"kill-{each}") for each in range(200)}
        assert heads == {len(sizes) - 1}
        claims = log.schedule.claim_due("turns", "w", now=1 << 60, until=1 << 61, limit=1_000)
        last = int(max(sizes, key=lambda kind: int(kind.removeprefix("batch."))).removeprefix("batch."))
        assert {claim.wake_at for claim in claims} == {last}


SENDER = """
import sys
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
log = open_log(sys.argv[1])
sys.stdin.readline()
log.append("a-1", [NewEvent(bytes(16), "sent", 1, b"")], -1)
log.close()
"""


def test_an_append_of_another_process_wakes_a_waiter(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with closing(open_log(url)) as log:
        assert not log.wait(0, 0.05)
        sender = subprocess.Popen([sys.executable, "-c", SENDER, url], stdin=subprocess.PIPE, text=True)
        assert sender.stdin is not None
        sender.stdin.write("go\n")
        sender.stdin.flush()
        assert log.wait(0, 30)
        assert sender.wait(timeout=30) == 0
        sender.stdin.close()
        assert log.head("a-1") == 0


def test_a_lost_acknowledgement_is_a_duplicate_for_the_process_that_comes_after(tmp_path: Path) -> None:
    url, event = f"sqlite:///{tmp_path}/log.db", NewEvent(bytes(16), "sent", 1, b"once")
    for kind in ("Appended", "Duplicate"):
        with closing(open_log(url)) as log:
            assert type(log.append("a-1", [event], NO_STREAM)).__name__ == kind
