"""The world of the triage example under test: its servers in a process nobody kills, and the count of who asked what, when."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from examples.triage import app
from tests.acceptance.harness import PATIENCE, Ended, child, eventlog, folded, journalled_keys, run, settled_intents
from tests.stores import Store

#: So long an answer takes, that there is a chance to die while waiting for it.
LATENCY_MS = 20


@attrs.frozen
class World:
    """The model and the GitHub around one log. They outlive every process of ours."""

    model: str
    github: str

    def env(self, caller: str) -> dict[str, str]:
        """Where a process finds them; what it sends is recorded under the name ``caller``."""
        base = self.model.removesuffix("/v1")
        return {"TRIAGE_MODEL_URL": f"{base}/{caller}/v1", "TRIAGE_GITHUB_URL": f"{self.github}/{caller}"}

    def chats(self) -> list[dict[str, str]]:
        """Every model request that arrived, in order."""
        return list(_get(self.model.removesuffix("/v1") + "/requests"))

    def effects(self) -> list[dict[str, str]]:
        """Every effect that arrived, repetitions included."""
        return [each for each in _get(self.github + "/requests") if each["key"]]

    def ledger(self) -> dict[str, Any]:
        """Idempotency key → what was done."""
        return dict(_get(self.github + "/ledger"))


def _get(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """Fresh servers with an empty ledger."""
    ports = folder / "servers.json"
    ports.unlink(missing_ok=True)
    with child([sys.executable, "-m", "examples.triage.servers", "--port-file", str(ports), "--latency-ms", str(LATENCY_MS)]) as servers:
        begun = time.monotonic()
        while not ports.exists():
            assert servers.poll() is None and time.monotonic() - begun < PATIENCE, "the servers of the example did not start"
            time.sleep(0.02)
        yield World(**json.loads(ports.read_text("utf-8")))


def triage(url: str, deliveries: Path, around: World, caller: str = "", kill_after: float | None = None) -> Ended:
    """One process of `eventlog run`, until it is idle or is killed."""
    command = eventlog("run", "examples.triage:app", "--log", url, "--input", deliveries, "--until-idle")
    return run(command, around.env(caller), kill_after=kill_after)


def final_states(url: str) -> dict[str, Any]:
    """What the agent remembers of every key."""
    return {stream: state.state for stream, state in folded(app, url).items()}


@attrs.frozen
class Life:
    """One process on the log, from its start to its end: what it was called, and what was durable before and after it."""

    caller: str
    killed: bool
    journal_before: frozenset[str]
    journal_after: frozenset[str]
    settled_before: frozenset[str]
    settled_after: frozenset[str]


def live(store: Store, url: str, deliveries: Path, around: World, caller: str, kill_after: float | None) -> tuple[Life, Ended]:
    """Run one life and take down what is durable on both sides of it."""
    journal, settled = journalled_keys(app, url), settled_intents(app, url)
    ended = triage(url, deliveries, around, caller, kill_after)
    if ended.killed:
        store.after_a_death(url)
    life = Life(caller, ended.killed, journal, journalled_keys(app, url), settled, settled_intents(app, url))
    return life, ended


@attrs.define
class Account:
    """What the requests of a log's lives add up to."""

    #: Anything that should not have happened.
    faults: list[str] = attrs.field(factory=list)
    #: caller of a killed life → requests whose answers were not durable when it was killed.
    lost_answers: dict[str, list[str]] = attrs.field(factory=dict)
    lost_outcomes: dict[str, list[str]] = attrs.field(factory=dict)
    chats: int = 0
    repeated_chats: int = 0
    effects: int = 0
    repeated_effects: int = 0


def account_for(lives: list[Life], chats: list[dict[str, str]], effects: list[dict[str, str]]) -> Account:
    """Attribute every request to the life that sent it, and every repetition to the kill that made it necessary."""
    account = Account(chats=len(chats), effects=len(effects))
    journal = [(life.journal_before, life.journal_after) for life in lives]
    settled = [(life.settled_before, life.settled_after) for life in lives]
    account.repeated_chats = _attribute(account, "model answer", lives, chats, journal, account.lost_answers)
    account.repeated_effects = _attribute(account, "outcome", lives, effects, settled, account.lost_outcomes)
    return account


def _attribute(
    account: Account,
    what: str,
    lives: list[Life],
    requests: list[dict[str, str]],
    durable: list[tuple[frozenset[str], frozenset[str]]],
    lost: dict[str, list[str]],
) -> int:
    sent = {life.caller: Counter(each["key"] for each in requests if each["caller"] == life.caller) for life in lives}
    if strangers := {each["caller"] for each in requests} - set(sent):
        account.faults.append(f"requests of {sorted(strangers)}, which is no life of this log")
    for life, (before, after) in zip(lives, durable, strict=True):
        for key, times in sent[life.caller].items():
            if key in before:
                account.faults.append(f"{life.caller} asked for {what} {key}, which was durable before it began")
            if times > 1:
                account.faults.append(f"{life.caller} asked for {what} {key} {times} times")
            if key not in after:
                if not life.killed:
                    account.faults.append(f"{life.caller} was not killed and left {what} {key} behind")
                lost.setdefault(life.caller, []).append(key)
    total = Counter(each["key"] for each in requests)
    losses = Counter(key for keys in lost.values() for key in keys)
    for key, times in total.items():
        if times != 1 + losses[key]:
            account.faults.append(f"{what} {key} was asked for {times} times, and lost by {losses[key]} kills")
    return total.total() - len(total)
