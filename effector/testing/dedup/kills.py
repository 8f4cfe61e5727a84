"""Checks with real processes that die by SIGKILL, before, after and in the middle of each transition: what was acknowledged is there, and whole."""

from __future__ import annotations

import random
import time
from typing import Final

from ...dedup.store import Busy, Claimed, DedupStore, Done, Free
from .child import child_of
from .maker import DAY, LEASE, NOON, DedupMaker, several

_PREAMBLE: Final = """
import sys
from {package}.dedup.opening import open_dedup
store, now = open_dedup(sys.stdin.readline().strip()), {now}
"""
_STEPS: Final = """
def pause(line):
    print(line, flush=True)
    sys.stdin.readline()

token, name = 0, sys.argv[1]
pause("ready")
for step in sys.argv[2:]:
    if step == "claim":
        token = store.claim(name, "child", now=now, until=now + {lease}).token
    elif step == "attempt":
        store.attempt(name, token, now=now)
    elif step == "renew":
        assert store.renew(name, token, until=now + 2 * {lease}, now=now)
    elif step == "release":
        store.release(name, token)
    elif step == "complete":
        store.complete(name, token, b"result" * 1000, status="OK", now=now, expires_at=now + {day})
    pause(step)
"""
_BUSY: Final = """
print("ready", flush=True)
sys.stdin.readline()
round_, number = sys.argv[1], 0
while True:
    name = f"{{round_}}-{{number}}"
    token = store.claim(name, "child", now=now, until=now + {lease}).token
    print("claim", name, flush=True)
    store.attempt(name, token, now=now)
    print("attempt", name, flush=True)
    if number % 3 == 0:
        store.complete(name, token, name.encode() * 1000, status="OK", now=now, expires_at=now + {day})
        print("complete", name, flush=True)
    elif number % 3 == 1:
        store.release(name, token)
        print("release", name, flush=True)
    number += 1
"""
_ROUNDS: Final = 6
_RESULT: Final = b"result" * 1000
_FULL: Final = ("claim", "attempt", "renew", "complete")
_GIVEN_BACK: Final = ("claim", "release")


def _code(body: str) -> str:
    return (_PREAMBLE + body).format(package=__package__.rpartition(".testing")[0], now=NOON, lease=LEASE, day=DAY)


def killed_between_transitions(maker: DedupMaker) -> None:
    """Killed before or after any transition, an owner leaves what it acknowledged: a lease that runs out, attempts that count, an outcome that stands."""
    if maker.url is None:
        return
    with several(maker, 1) as (folder, (store,)):
        for number, way in enumerate([*(_FULL[:done] for done in range(len(_FULL) + 1)), _GIVEN_BACK]):
            name = f"intent{number}"
            child = child_of(_code(_STEPS), maker.url(folder), name, *_FULL if way != _GIVEN_BACK else way)
            for step in way:
                child.say("go")
                assert step == child.hear()
            child.kill()
            _check_left(store, name, way)


def _check_left(store: DedupStore, name: str, acknowledged: tuple[str, ...]) -> None:
    last = acknowledged[-1] if acknowledged else ""
    at_once = {
        "": Free(0),
        "claim": Busy(NOON + LEASE, "child"),
        "attempt": Busy(NOON + LEASE, "child"),
        "renew": Busy(NOON + 2 * LEASE, "child"),
        "complete": Done("OK", _RESULT),
        "release": Free(0),
    }[last]
    assert at_once == store.look(name, now=NOON), f"{name}: killed after {last or 'nothing'}"
    after = NOON + 2 * LEASE
    found = store.claim(name, "next", now=after, until=after + LEASE)
    if last == "complete":
        assert Done("OK", _RESULT) == found, name
    else:
        assert isinstance(found, Claimed), f"{name}: {found!r}"
        assert acknowledged.count("attempt") == found.attempts, name


def killed_at_any_moment(maker: DedupMaker) -> None:
    """Killed at full speed, at moments that chance chooses: every acknowledged transition is there, and nothing is half there."""
    if maker.url is None:
        return
    chance = random.Random(20)
    with several(maker, 1) as (folder, (store,)):
        for round_ in range(_ROUNDS):
            child = child_of(_code(_BUSY), maker.url(folder), f"round{round_}")
            child.say("go")
            heard = [child.hear() for _ in range(3)]
            time.sleep(chance.uniform(0, 0.05))  # the moment of the kill, and nothing is waited for
            heard += child.kill()
            told: dict[str, list[str]] = {}
            for line in heard:
                step, name = line.split()
                told.setdefault(name, []).append(step)
            assert told
            for name, steps in told.items():
                _check_whole(store, name, steps)


def _check_whole(store: DedupStore, name: str, steps: list[str]) -> None:
    after = NOON + LEASE
    found = store.look(name, now=after)
    if isinstance(found, Done):
        assert Done("OK", name.encode() * 1000) == found, name
        assert "attempt" in steps, f"{name} completed, but only {steps} were acknowledged"
    else:
        assert isinstance(found, Free), f"{name}: {found!r}"
        assert "complete" not in steps, f"{name}: an acknowledged outcome is gone"
        begun = found.attempts
        # The transition under way when the kill came may have taken effect or not; no other may differ.
        assert begun == 1 if "attempt" in steps else begun in (0, 1), f"{name}: {begun} attempts after {steps}"
    held = store.look(name, now=NOON)
    assert not ("release" in steps and isinstance(held, Busy)), f"{name} was handed back and is held"


CHECKS = (killed_between_transitions, killed_at_any_moment)
