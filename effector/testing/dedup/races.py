"""Checks of owners that meet: one claim, one outcome, no attempt lost, from threads and from other processes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Final

from ...dedup.errors import StaleToken
from ...dedup.store import Busy, Claimed, DedupStore, Done
from .child import child_of
from .maker import DAY, LEASE, NOON, PATIENCE, TICK, DedupMaker, claimed, several, together

_RIVALS: Final = 8
_INTENTS: Final = 120
_PROCESS: Final = """
import json, sys
from {package}.dedup.opening import open_dedup
from {package}.dedup.store import Claimed, Done

store, name, count, now = open_dedup(sys.stdin.readline().strip()), sys.argv[1], int(sys.argv[2]), {now}
print("ready", flush=True)
sys.stdin.readline()
ran, seen = [], {{}}
waiting = [f"intent{{number}}" for number in range(count)]
while waiting:
    intent_id = waiting.pop(0)
    found = store.claim(intent_id, name, now=now, until=now + {lease})
    if isinstance(found, Claimed):
        ran.append(f"{{intent_id}} {{store.attempt(intent_id, found.token, now=now)}}")
        store.complete(intent_id, found.token, name.encode(), status="OK", now=now, expires_at=now + {lease})
        waiting.append(intent_id)
    elif isinstance(found, Done):
        seen[intent_id] = found.result.decode()
    else:
        waiting.append(intent_id)
store.close()
print(json.dumps([ran, seen]))
"""


def one_of_many_claims(maker: DedupMaker) -> None:
    """Eight threads, each with its own store object where there can be several, want the same intent: one gets it, the others are told of it."""
    with several(maker, _RIVALS) as (_, stores):
        for round_ in range(15):
            bids = [_bid(store, f"intent{round_}", f"rival{number}") for number, store in enumerate(stores)]
            found = together(*bids)
            (winner,) = [number for number, each in enumerate(found) if isinstance(each, Claimed)]
            assert [Busy(NOON + LEASE, f"rival{winner}")] * (_RIVALS - 1) == [each for each in found if not isinstance(each, Claimed)]


def _bid(store: DedupStore, intent_id: str, owner: str, now: int = NOON) -> Callable[[], object]:
    return lambda: store.claim(intent_id, owner, now=now, until=now + LEASE)


def one_of_many_takes_over(maker: DedupMaker) -> None:
    """Eight threads want an intent whose lease ran out, whose claim was handed back, or whose result expired: one gets it, under a new token."""
    with several(maker, _RIVALS) as (_, stores):
        for round_ in range(5):
            ran_out, handed_back, expired = (f"{kind}{round_}" for kind in ("ran-out", "handed-back", "expired"))
            old = {name: claimed(stores[0], name) for name in (ran_out, handed_back, expired)}
            stores[0].release(handed_back, old[handed_back].token)
            stores[0].complete(expired, old[expired].token, b"old", status="OK", now=NOON, expires_at=NOON + LEASE)
            for intent_id, before in old.items():
                found = together(*[_bid(store, intent_id, f"rival{number}", NOON + LEASE) for number, store in enumerate(stores)])
                (winner,) = [each for each in found if isinstance(each, Claimed)]
                assert (0, True) == (winner.attempts, winner.token > before.token)


def one_of_many_outcomes(maker: DedupMaker) -> None:
    """Owners of one intent, one after the other, all come back with a result at once: the last one's is stored, and all who look see it."""
    with several(maker, 4) as (_, stores):
        for round_ in range(15):
            name = f"intent{round_}"
            owners = [claimed(store, name, f"owner{number}", now=NOON + number * LEASE) for number, store in enumerate(stores)]
            late = NOON + 9 * LEASE
            found = together(*[_result(store, name, mine.token, late) for store, mine in zip(stores, owners, strict=True)])
            assert [False, False, False, True] == found
            last = str(owners[-1].token).encode()
            assert [Done("OK", last)] * 4 == [store.look(name, now=late) for store in stores]


def _result(store: DedupStore, name: str, token: int, now: int) -> Callable[[], bool]:
    def run() -> bool:
        try:
            store.complete(name, token, str(token).encode(), status="OK", now=now, expires_at=now + DAY)
        except StaleToken:
            return False
        return True

    return run


def many_owners_many_intents(maker: DedupMaker) -> None:
    """Twenty deliveries of each intent to four threads: one attempt each, and the same outcome at every delivery."""
    with several(maker, 4) as (_, stores):
        found = together(*[_worker(store, f"worker{number}") for number, store in enumerate(stores)])
        assert {f"intent{number}": 1 for number in range(20)} == Counter(name for ran, _ in found for name in ran)
        outcomes = {(name, outcome.result) for _, seen in found for name, outcome in seen}
        assert 20 == len(outcomes)
        assert 4 * 20 * 5 == sum(len(seen) for _, seen in found)


def _worker(store: DedupStore, owner: str) -> Callable[[], tuple[list[str], list[tuple[str, Done]]]]:
    def run() -> tuple[list[str], list[tuple[str, Done]]]:
        ran: list[str] = []
        seen: list[tuple[str, Done]] = []
        deliveries = [f"intent{number}" for number in range(20) for _ in range(5)]
        while deliveries:
            name = deliveries.pop(0)
            found = store.claim(name, owner, now=NOON, until=NOON + LEASE)
            if isinstance(found, Done):
                seen.append((name, found))
                continue
            deliveries.append(name)
            if isinstance(found, Claimed):
                assert 1 == store.attempt(name, found.token, now=NOON)
                ran.append(name)
                store.complete(name, found.token, owner.encode(), status="OK", now=NOON, expires_at=NOON + DAY)
        return ran, seen

    return run


def attempts_of_racing_owners_are_all_counted(maker: DedupMaker) -> None:
    """Owners that overtake each other all the time: every recorded attempt is in the count, every token was given once, in growing order."""
    with several(maker, 4) as (_, stores):
        found = together(*[_overtaking(store, f"owner{number}", number) for number, store in enumerate(stores)])
        attempts = [attempt for _, attempts in found for attempt in attempts]
        tokens = [token for tokens, _ in found for token in tokens]
        assert list(range(1, len(attempts) + 1)) == sorted(attempts)
        assert len(tokens) == len(set(tokens))
        assert all(list(mine) == sorted(mine) for mine, _ in found)


def _overtaking(store: DedupStore, owner: str, number: int) -> Callable[[], tuple[list[int], list[int]]]:
    def run() -> tuple[list[int], list[int]]:
        tokens: list[int] = []
        attempts: list[int] = []
        for turn in range(30):
            now = NOON + (4 * turn + number) * TICK
            found = store.claim("one", owner, now=now, until=now + TICK)
            if isinstance(found, Claimed):
                tokens.append(found.token)
                try:
                    attempts.append(store.attempt("one", found.token, now=now))
                except StaleToken:
                    continue
        return tokens, attempts

    return run


def processes_share_the_work(maker: DedupMaker) -> None:
    """Three other processes race over the same intents: each is attempted once, by one of them, and all three see that one's outcome."""
    if maker.url is None:
        return
    with several(maker, 1) as (folder, _):
        code = _PROCESS.format(package=__package__.rpartition(".testing")[0], now=NOON, lease=DAY)
        racers = [child_of(code, maker.url(folder), name, str(_INTENTS)) for name in "abc"]
        told: list[tuple[list[str], dict[str, str]]] = []
        for racer in racers:
            racer.say("go")
        for racer in racers:
            told.append(json.loads(racer.end(PATIENCE)))
        assert sorted(f"intent{number} 1" for number in range(_INTENTS)) == sorted(name for ran, _ in told for name in ran)
        assert told[0][1] == told[1][1] == told[2][1]
        assert _INTENTS == len(told[0][1])


CHECKS = (
    one_of_many_claims,
    one_of_many_takes_over,
    one_of_many_outcomes,
    many_owners_many_intents,
    attempts_of_racing_owners_are_all_counted,
    processes_share_the_work,
)
