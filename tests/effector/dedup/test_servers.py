"""What both servers must bear: answers that are lost on the way, crashes, restarts, silence."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any, TypeVar

import attrs
import pytest

from intentlog.effector.dedup import Busy, Claimed, Done, StoreUnavailable, open_dedup, postgres_connections, redis
from intentlog.effector.dedup.checking import CheckedStore
from intentlog.effector.dedup.patience import Away
from intentlog.effector.testing.dedup.maker import DAY, LEASE, NOON, claimed, completed, together

T = TypeVar("T")


@attrs.frozen
class Running:
    """A durable server of this test's own."""

    url: str
    crash: Callable[[], object]
    start: Callable[[], object]
    pids: Callable[[], list[int]]


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    request.getfixturevalue(f"{request.param}_server")  # skips where there is none
    if request.param == "postgres":
        from tests.services.postgres import PostgresServer

        with PostgresServer() as postgres:
            postgres.start(fsync=True)
            url = postgres.create_database()
            yield Running(url, postgres.stop_immediately, lambda: postgres.start(fsync=True), lambda: _backends(url))
    else:
        from tests.services.redis import RedisServer

        with RedisServer() as cache:
            cache.start(durable=True)
            yield Running(cache.url, cache.kill, lambda: cache.start(durable=True), lambda: [cache.pid or 0])


def _backends(url: str) -> list[int]:
    import psycopg

    with psycopg.connect(url) as connection:
        return [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'intentlog-dedup'")]


def losing_first_answers(store: Any) -> Any:
    """Every transition of the store takes effect, and its first answer is lost on the way."""
    tried = store._tried

    def losing(doing: str, transition: Callable[[], T]) -> T:
        answers: list[T] = []

        def lost_once() -> T:
            answers.append(transition())
            if len(answers) == 1:
                raise Away("the answer was lost")
            return answers[-1]

        answer: T = tried(doing, lost_once)
        return answer

    store._tried = losing
    return store


def test_a_transition_whose_answer_was_lost_is_made_once(server_url: str) -> None:
    with closing(losing_first_answers(open_dedup(server_url))) as store:
        assert isinstance(store, CheckedStore)
        mine = claimed(store, "one")
        assert 0 == mine.attempts
        assert [1, 2] == [store.attempt("one", mine.token, now=NOON) for _ in range(2)]
        assert store.renew("one", mine.token, until=NOON + 2 * LEASE, now=NOON)
        store.complete("one", mine.token, b"x", status="OK", now=NOON, expires_at=NOON + DAY)
        assert Done("OK", b"x") == store.look("one", now=NOON)
        theirs = claimed(store, "two")
        store.release("two", theirs.token)
        assert claimed(store, "two").token > theirs.token


def test_a_restart_in_the_middle_is_waited_for_and_nothing_acknowledged_is_gone(server: Running) -> None:
    with closing(open_dedup(f"{server.url}?patience_ms=60000")) as store:
        completed(store, "done", b"kept")
        mine = claimed(store, "held")
        assert 1 == store.attempt("held", mine.token, now=NOON)
        for number in range(2, 5):
            server.crash()
            again = threading.Thread(target=server.start)
            again.start()
            assert number == store.attempt("held", mine.token, now=NOON), "tried again until the server was back, and counted once"
            again.join()
            assert Done("OK", b"kept") == store.look("done", now=NOON)
            assert Busy(NOON + LEASE, "me") == store.look("held", now=NOON)


def test_a_server_that_stays_away_is_unavailable_after_the_patience_and_serves_again_later(server: Running) -> None:
    with closing(open_dedup(f"{server.url}?patience_ms=300")) as store:
        mine = claimed(store, "one")
        server.crash()
        begin = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"did not answer .* tries to record an attempt") as refusal:
            store.attempt("one", mine.token, now=NOON)
        assert time.monotonic() - begin < 10
        assert "127.0.0.1" in str(refusal.value)
        with pytest.raises(StoreUnavailable):
            store.ping()
        server.start()
        store.ping()
        assert 1 == store.attempt("one", mine.token, now=NOON)


def test_closing_ends_the_waiting_for_a_server(server: Running) -> None:
    store = open_dedup(f"{server.url}?patience_ms=60000")
    mine = claimed(store, "one")
    server.crash()
    ended: list[BaseException] = []

    def waiting() -> None:
        try:
            store.attempt("one", mine.token, now=NOON)
        except StoreUnavailable as reason:
            ended.append(reason)

    waiter = threading.Thread(target=waiting)
    waiter.start()
    store.close()
    waiter.join(10)
    assert [StoreUnavailable] == [type(reason) for reason in ended]


def test_closing_lets_what_is_under_way_end(server: Running) -> None:
    store = open_dedup(f"{server.url}?patience_ms=0")
    mine = claimed(store, "one")
    silent, given = server.pids(), list[int | BaseException]()

    def attempting() -> None:
        try:
            given.append(store.attempt("one", mine.token, now=NOON))
        except BaseException as problem:  # whatever it is, the test names it
            given.append(problem)

    for pid in silent:
        os.kill(pid, signal.SIGSTOP)
    try:
        waiter = threading.Thread(target=attempting)
        waiter.start()
        time.sleep(0.3)  # it waits for the answer of a server that says nothing
        store.close()
    finally:
        for pid in silent:
            os.kill(pid, signal.SIGCONT)
    waiter.join(10)
    assert [1] == given
    with pytest.raises(StoreUnavailable, match="has been closed"):
        store.attempt("one", mine.token, now=NOON)


def test_a_server_that_falls_silent_is_unavailable_and_hangs_nobody(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (postgres_connections, redis):
        monkeypatch.setattr(module, "_LONGEST_ANSWER_S", 0.5)
    with closing(open_dedup(f"{server.url}?patience_ms=0")) as store:
        mine = claimed(store, "one")
        silent = server.pids()
        assert silent
        for pid in silent:
            os.kill(pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            with pytest.raises(StoreUnavailable):
                store.attempt("one", mine.token, now=NOON)
            assert time.monotonic() - begin < 20
        finally:
            for pid in silent:
                os.kill(pid, signal.SIGCONT)


def test_namespaces_on_one_server_know_nothing_of_each_other(server_url: str) -> None:
    beside = server_url.replace("namespace=", "namespace=other_")[: len(server_url)]
    with closing(open_dedup(server_url)) as one, closing(open_dedup(beside)) as other:
        completed(one, "same", b"one")
        assert 0 == claimed(other, "same").attempts


def test_crashes_under_full_load_lose_nothing_and_double_nothing(server: Running) -> None:
    """Whatever was on the way when the server died took effect once or not at all, and its owner never knew the difference."""
    url, workers, crashes, begun = f"{server.url}?patience_ms=60000", 3, 3, threading.Event()
    with ExitStack() as stack:
        stores = [stack.enter_context(open_dedup(url)) for _ in range(workers)]
        ended = threading.Event()
        ran: list[list[str]] = [[] for _ in range(workers)]

        def work(number: int) -> None:
            while not ended.is_set():
                name = f"intent{number}-{len(ran[number])}"
                mine = stores[number].claim(name, f"worker{number}", now=NOON, until=NOON + LEASE)
                assert isinstance(mine, Claimed), f"{name}: {mine!r}, a claim of its own that it did not recognise"
                assert (0, 1) == (mine.attempts, stores[number].attempt(name, mine.token, now=NOON)), name
                stores[number].complete(name, mine.token, name.encode(), status="OK", now=NOON, expires_at=NOON + DAY)
                ran[number].append(name)
                begun.set()

        def crash() -> None:
            try:
                for _ in range(crashes):
                    begun.clear()
                    assert begun.wait(60), "the workers came to a stop"
                    server.crash()
                    server.start()
                begun.clear()
                assert begun.wait(60), "the workers did not go on"
            finally:
                ended.set()

        together(crash, *[lambda number=number: work(number) for number in range(workers)])
        for name in (name for names in ran for name in names):
            assert Done("OK", name.encode()) == stores[0].look(name, now=NOON)
