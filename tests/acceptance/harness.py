"""Runs `eventlog` as a child process, kills it, and looks at the log it left. What is particular to one app is elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs

from intentlog.agents import App, facts
from intentlog.agents.models import idempotency_key
from intentlog.agents.streams import Folder, StreamState
from intentlog.eventlog import EventLog, StoredEvent, StoreSchemaError, open_log
from intentlog.eventlog.clock import SECOND
from intentlog.replay import Verdict, replay_all
from tests.acceptance.forking import Forked

ROOT = Path(__file__).resolve().parents[2]
#: What a child may take that nobody kills; far more than it needs.
PATIENCE = 120.0


def eventlog(*arguments: str | Path) -> list[str]:
    """The command line of `eventlog …`, as the console script of this very environment."""
    return [str(Path(sys.executable).with_name("eventlog")), *map(str, arguments)]


@attrs.frozen
class Ended:
    """A child that is no more: its exit code (negative: the signal) and everything it printed."""

    code: int
    output: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@contextmanager
def child(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Iterator[subprocess.Popen[str]]:
    """A child process that does not outlive the block."""
    environment = around(env or {})
    started = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def forked(module: str, words: Sequence[str], env: Mapping[str, str]) -> Iterator[Forked]:
    """``python -m module words…`` as such a child, without the time in which an interpreter reads its modules."""
    started = Forked(module, words, around(env), ROOT)
    try:
        yield started
    finally:
        started.close()


def around(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child: loopback is reached directly, whatever proxy the caller's shell has."""
    return {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **env}


def end_of(started: subprocess.Popen[str] | Forked, kill_after: float | None = None) -> Ended:
    """Wait for the child's end; with ``kill_after`` it gets SIGKILL when that many seconds have passed."""
    try:
        output, _ = started.communicate(timeout=PATIENCE if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        started.kill()
        output, _ = started.communicate()
        assert kill_after is not None, f"{started.args!r} did not end within {PATIENCE:g} s:\n{output}"
    code = started.returncode
    assert code is not None
    return Ended(code, output)


def run(command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT, kill_after: float | None = None) -> Ended:
    """Start, wait, give the end."""
    with child(command, env, cwd) as started:
        return end_of(started, kill_after)


@contextmanager
def opened(url: str) -> Iterator[EventLog]:
    """The log at ``url`` for looking at."""
    log = open_log(url, create=False)
    try:
        yield log
    finally:
        log.close()


def events(url: str, *types: str) -> list[StoredEvent]:
    """All events of these types in commit order; none when the log was not even made yet."""
    try:
        with opened(url) as log:
            return list(log.read_all(types=types))
    except StoreSchemaError:
        return []


def decoded(app: App, event: StoredEvent) -> Any:
    """The event as an instance of its class."""
    return app.codec.decode(event.type, event.schema, event.data)


def journalled_keys(app: App, url: str) -> frozenset[str]:
    """Idempotency keys of the model calls whose answers are in the journal."""
    found = [(event.stream, decoded(app, event)) for event in events(url, "model_call.cached")]
    return frozenset(idempotency_key(stream, fact.seq, fact.step, fact.digest) for stream, fact in found)


def settled_intents(app: App, url: str) -> frozenset[str]:
    """Intents that have an outcome."""
    return frozenset(decoded(app, event).intent_id for event in events(url, "intent.settled"))


def folded(app: App, url: str) -> dict[str, StreamState]:
    """Every stream's state, folded from its first event."""
    with opened(url) as log:
        states = {}
        for stream in log.streams():
            folder = Folder(app.definitions[stream.partition("-")[0]])
            states[stream] = folder.empty(stream)
            for chunk in log.rows(stream):
                folder.fold(states[stream], chunk)
        return states


def count_types(url: str) -> Counter[str]:
    """How many events of each type there are."""
    return Counter(event.type for event in events(url))


def longest_silence(url: str) -> float:
    """Seconds of the longest pause between two events: in a run nobody disturbs, no one waits for a lease to run out."""
    moments = [event.recorded_at for event in events(url)]
    return max((later - earlier for earlier, later in pairwise(moments)), default=0) / SECOND


def faults_of(app: App, url: str, inputs: int) -> list[str]:
    """What keeps this log from being one in which ``inputs`` inputs were handled, each once, and nothing went wrong."""
    counts, faults = count_types(url), []
    for kind in ("input.received", "activation.completed"):
        if counts[kind] != inputs:
            faults.append(f"{counts[kind]} × {kind}, expected {inputs}")
    for event in events(url, "activation.failed", "stream.blocked", "timer.fired"):
        faults.append(f"{event.stream} version {event.version}: {decoded(app, event)}")
    if counts["intent.staged"] != counts["intent.settled"]:
        faults.append(f"{counts['intent.staged']} intents, {counts['intent.settled']} settlements")
    for event in events(url, "intent.settled"):
        fact: facts.IntentSettled = decoded(app, event)
        if fact.status != "OK":
            faults.append(f"{event.stream} version {event.version}: {fact.status} {fact.failure}")
    for stream, state in folded(app, url).items():
        if state.run.open or state.run.line or state.run.completed != state.run.inputs:
            faults.append(f"{stream}: {state.run.completed} of {state.run.inputs} inputs completed, open {sorted(state.run.open)}")
    return faults


def not_the_same(app: App, url: str) -> list[str]:
    """Streams whose replay does not give what is recorded, each with how it came out."""
    with opened(url) as log:
        return [
            f"{replayed.stream}: {replayed.verdict.value} {replayed.divergence or replayed.reason}"
            for replayed in replay_all(log, app)
            if replayed.verdict is not Verdict.SAME
        ]
