"""How the kit meets a dedup store, and the few values its checks are made of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs

from ....eventlog.clock import MILLISECOND, SECOND, Micros
from ....eventlog.testing.maker import PATIENCE, expect, together
from ...dedup.store import Claimed, DedupStore, Done

__all__ = ["DAY", "LEASE", "NOON", "PATIENCE", "DedupMaker", "claimed", "completed", "expect", "fresh", "several", "together"]

OpenDedup = Callable[[Path], DedupStore]

NOON: Final = 1_700_000_000_000_000
"""Where the kit's moments begin."""
LEASE: Final[Micros] = 300 * SECOND
DAY: Final[Micros] = 24 * 3600 * SECOND
TICK: Final[Micros] = MILLISECOND


@attrs.frozen
class DedupMaker:
    """A store as the kit sees it: how to make one for an empty folder, and what it can do beyond that."""

    name: str
    #: A fresh, empty store, with its files (if any) in the folder; elsewhere, the folder's name tells stores apart.
    make: OpenDedup
    #: A second object on the store that ``make`` made for the same folder; None when a store lives in its object.
    reopen: OpenDedup | None = None
    #: What ``open_dedup`` takes in another process to reach it; None when none can.
    url: Callable[[Path], str] | None = None


@contextmanager
def fresh(maker: DedupMaker) -> Iterator[DedupStore]:
    """One new store, closed afterwards."""
    with several(maker, 1) as (_, stores):
        yield stores[0]


@contextmanager
def several(maker: DedupMaker, count: int) -> Iterator[tuple[Path, Sequence[DedupStore]]]:
    """The folder of one new store and ``count`` objects on it: as many as can be opened, or the same one over and over."""
    with tempfile.TemporaryDirectory(prefix="intentlog-") as folder, ExitStack() as stack:
        first = maker.make(Path(folder))
        stack.callback(first.close)
        stores = [first]
        for _ in range(count - 1):
            if maker.reopen is None:
                stores.append(first)
            else:
                stores.append(maker.reopen(Path(folder)))
                stack.callback(stores[-1].close)
        yield Path(folder), stores


def claimed(store: DedupStore, intent_id: str, owner: str = "me", *, now: Micros = NOON, lease: Micros = LEASE) -> Claimed:
    """A claim that must succeed."""
    found = store.claim(intent_id, owner, now=now, until=now + lease)
    assert isinstance(found, Claimed), f"expected a claim of {intent_id}, got {found!r}"
    return found


def completed(store: DedupStore, intent_id: str, result: bytes = b"done", *, now: Micros = NOON, status: str = "OK", ttl: Micros = DAY) -> Claimed:
    """An intent carried out once, with its outcome stored."""
    mine = claimed(store, intent_id, now=now)
    store.attempt(intent_id, mine.token, now=now)
    store.complete(intent_id, mine.token, result, status=status, now=now, expires_at=now + ttl)
    assert Done(status, result) == store.look(intent_id, now=now)
    return mine
