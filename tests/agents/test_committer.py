from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from intentlog.agents.committer import Committer
from intentlog.eventlog.errors import EventIdConflict, LogUnavailable, WrongExpectedVersion
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import Appended, AppendRequest, Duplicate, EventLog, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY, ExpectedVersion


def request(stream: str, id: int, expected: ExpectedVersion = ANY, content: bytes = b"\x01") -> AppendRequest:
    return AppendRequest((StreamAppend(stream, (NewEvent(id.to_bytes(16, "big"), "x", 1, content),), expected),))


class Store:
    """A memory log behind a door that can be shut, can lose the answer, and counts its commits."""

    def __init__(self, *, served: bool = False) -> None:
        self.served = served
        self.log: EventLog = open_log("memory://")
        self.commits: list[int] = []
        self.open = threading.Event()
        self.open.set()
        self.before: list[Exception] = []
        self.after: list[Exception] = []

    def append_batch(self, requests: Sequence[AppendRequest]) -> list[Any]:
        self.open.wait(5)
        self.commits.append(len(requests))
        if self.before:
            raise self.before.pop(0)
        outcomes = self.log.append_batch(requests)
        if self.after:
            raise self.after.pop(0)
        return outcomes


def story(tell: Callable[[Store, Committer], Any], *, served: bool = False) -> Store:
    store = Store(served=served)

    async def run() -> None:
        committer = Committer(store)  # type: ignore[arg-type]
        try:
            await tell(store, committer)
        finally:
            store.open.set()
            committer.close()

    asyncio.run(run())
    return store


def test_where_a_server_writes_keys_in_step_go_in_cohorts_so_that_it_writes_while_turns_run():
    async def tell(store: Store, committer: Committer) -> None:
        for turn in range(3):
            await asyncio.gather(*(committer.commit(request(f"a-{number}", turn)) for number in range(64)))

    assert [64, 64, 64] == story(tell).commits
    in_cohorts = story(tell, served=True).commits
    assert 192 == sum(in_cohorts)
    assert [24, 40] * 3 == in_cohorts


def test_what_is_appended_during_one_commit_shares_the_next():
    async def tell(store: Store, committer: Committer) -> None:
        store.open.clear()
        waiting = [asyncio.create_task(committer.commit(request(f"a-{n}", n))) for n in range(50)]
        await asyncio.sleep(0.02)
        waiting += [asyncio.create_task(committer.commit(request(f"b-{n}", n))) for n in range(50)]
        await asyncio.sleep(0.02)
        store.open.set()
        assert {Appended} == {type(each) for each in await asyncio.gather(*waiting)}

    assert [50, 50] == story(tell).commits


def test_one_commit_holds_at_most_256_requests():
    async def tell(store: Store, committer: Committer) -> None:
        await asyncio.gather(*(committer.commit(request(f"a-{n}", n)) for n in range(600)))

    assert [256, 256, 88] == story(tell).commits


def test_a_loser_spoils_no_batch():
    async def tell(store: Store, committer: Committer) -> None:
        first = await committer.commit(request("a-k", 1))
        outcomes = await asyncio.gather(
            committer.commit(request("a-k", 2, expected=7)),
            committer.commit(request("a-k", 1, content=b"\x02")),
            committer.commit(request("a-k", 1)),
            committer.commit(request("a-l", 1)),
        )
        assert [Appended, WrongExpectedVersion, EventIdConflict, Duplicate, Appended] == [type(each) for each in (first, *outcomes)]

    story(tell)


def test_a_commit_whose_fate_is_unknown_is_sent_again_and_finds_its_own_events():
    async def tell(store: Store, committer: Committer) -> None:
        store.after = [LogUnavailable("the answer was lost")]
        assert isinstance(await committer.commit(request("a-k", 1)), Duplicate)

    store = story(tell)
    assert ([1, 1], 0) == (store.commits, store.log.head("a-k"))


def test_a_store_that_comes_back_in_time_costs_nothing_but_time():
    async def tell(store: Store, committer: Committer) -> None:
        store.before = [LogUnavailable("locked"), LogUnavailable("locked")]
        assert isinstance(await committer.commit(request("a-k", 1)), Appended)

    assert 3 == len(story(tell).commits)


@pytest.mark.parametrize("problem, tries", [(LogUnavailable("gone"), 6), (RuntimeError("a bug"), 1)], ids=["unavailable", "anything else"])
def test_everybody_who_waits_hears_of_a_commit_that_cannot_be_made_and_later_ones_go_on(problem, tries, monkeypatch):
    async def tell(store: Store, committer: Committer) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda delay, *call: loop.call_soon(*call))
        store.before = [problem] * tries
        heard = await asyncio.gather(*(committer.commit(request(f"a-{n}", n)) for n in range(3)), return_exceptions=True)
        assert [problem] * 3 == heard
        assert isinstance(await committer.commit(request("a-9", 9)), Appended)

    assert [3] * tries + [1] == story(tell).commits


def test_who_stops_waiting_does_not_take_the_request_back_nor_stop_the_others():
    async def tell(store: Store, committer: Committer) -> None:
        store.open.clear()
        quitter = asyncio.create_task(committer.commit(request("a-1", 1)))
        other = asyncio.create_task(committer.commit(request("a-2", 2)))
        await asyncio.sleep(0.02)
        quitter.cancel()
        await asyncio.sleep(0)
        store.open.set()
        assert isinstance(await other, Appended)

    assert 0 == story(tell).log.head("a-1")


def test_whoever_asked_for_it_is_told_of_each_commit_after_it_is_durable():
    told: list[int] = []
    store = Store()

    async def run() -> None:
        def after(requests: list[AppendRequest]) -> None:
            told.append(len(requests))
            assert 0 == store.log.head("a-k")

        committer = Committer(store, after_commit=after)  # type: ignore[arg-type]
        await committer.commit(request("a-k", 1))
        committer.close()

    asyncio.run(run())
    assert [1] == told
