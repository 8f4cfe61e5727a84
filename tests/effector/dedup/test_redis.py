"""The Redis store's own: its keys, settings under which it would forget, rights, scripts, and what the server removes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import redis

from intentlog.effector.dedup import DedupSchemaError, StoreUnavailable, StoreUnfit, open_dedup
from intentlog.effector.dedup.checking import MARGIN
from intentlog.effector.testing.dedup.maker import DAY, LEASE, NOON, claimed, completed
from tests.services.redis import RedisServer

PREFIX = "intentlog:dedup:"


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture(scope="module")
def own(redis_server: object) -> Iterator[RedisServer]:
    """A server whose settings these tests may change; skipped where there is none."""
    with RedisServer() as server:
        yield server.start(durable=True)


def test_the_server_removes_a_result_some_time_after_it_expired_and_never_a_claim(redis_url: str, client: Any) -> None:
    with closing(open_dedup(redis_url)) as store:
        mine = claimed(store, "held")
        store.attempt("held", mine.token, now=NOON)
        completed(store, "done", ttl=LEASE)
        assert -1 == client.ttl(f"{PREFIX}intent:held")
        kept = (LEASE + MARGIN) // 1_000_000
        assert kept - 60 <= client.ttl(f"{PREFIX}intent:done") <= kept
        claimed(store, "done", now=NOON + LEASE)
        assert -1 == client.ttl(f"{PREFIX}intent:done"), "claimed anew, it is not removed under its owner"


def test_scripts_that_the_server_forgot_are_loaded_again(redis_url: str, client: Any) -> None:
    with closing(open_dedup(redis_url)) as store:
        mine = claimed(store, "one")
        client.script_flush()
        assert 1 == store.attempt("one", mine.token, now=NOON)


@pytest.mark.parametrize("version", ["2", "three"])
def test_keys_of_a_newer_release_are_refused(redis_url: str, client: Any, version: str) -> None:
    client.set(f"{PREFIX}schema", version)
    with pytest.raises(DedupSchemaError, match="made by a newer release"):
        open_dedup(redis_url)


def test_keys_of_something_else_are_refused(redis_url: str, client: Any) -> None:
    client.set(f"{PREFIX}intent:one", "text")
    with closing(open_dedup(redis_url)) as store, pytest.raises(DedupSchemaError, match="holds something else"):
        store.claim("one", "me", now=NOON, until=NOON + 1)


def test_a_server_that_evicts_is_refused_and_one_that_cannot_is_not(own: RedisServer) -> None:
    with redis.Redis.from_url(own.url) as client:
        try:
            client.config_set("maxmemory-policy", "allkeys-lru")
            open_dedup(own.url).close()
            client.config_set("maxmemory", "100mb")
            for policy in ("allkeys-lru", "volatile-ttl"):
                client.config_set("maxmemory-policy", policy)
                with pytest.raises(StoreUnfit, match="Set maxmemory-policy to noeviction"):
                    open_dedup(own.url)
            client.config_set("maxmemory-policy", "noeviction")
            open_dedup(own.url).close()
        finally:
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")


def test_a_server_without_memory_writes_nothing_and_is_unavailable_at_once(own: RedisServer) -> None:
    with closing(open_dedup(own.url)) as store, redis.Redis.from_url(own.url) as client:
        mine = claimed(store, "full")
        try:
            client.config_set("maxmemory", "1")
            with pytest.raises(StoreUnavailable, match="has no memory left"):
                store.attempt("full", mine.token, now=NOON)
        finally:
            client.config_set("maxmemory", "0")
        assert 1 == store.attempt("full", mine.token, now=NOON)


def test_how_durable_the_server_is_is_told(own: RedisServer) -> None:
    with redis.Redis.from_url(own.url) as client:
        assert () == caveats(own.url)
        client.config_set("appendfsync", "everysec")
        assert "appendfsync is everysec" in caveats(own.url)[0]
        client.config_set("appendonly", "no")
        assert "appendonly is off" in caveats(own.url)[0]
        client.config_set("appendonly", "yes")
        client.config_set("appendfsync", "always")


def caveats(url: str) -> tuple[str, ...]:
    with closing(open_dedup(url)) as store:
        return store.caveats


def test_a_user_with_just_the_rights_that_the_error_names_is_served(own: RedisServer) -> None:
    place = own.url.removeprefix("redis://")
    with redis.Redis.from_url(own.url) as client:
        client.execute_command("ACL", "SETUSER", "dedup", "reset", "on", ">hunter2", "+ping")
        with pytest.raises(StoreUnfit) as refusal:
            open_dedup(f"redis://dedup:hunter2@{place}")
        assert "hunter2" not in str(refusal.value)
        rights = str(refusal.value).partition("Let it: ")[2].split()
        client.execute_command("ACL", "SETUSER", "dedup", *rights)
    with closing(open_dedup(f"redis://dedup:hunter2@{place}")) as store:
        assert "may not read appendfsync" in store.caveats[0]
        completed(store, "rights")
        claimed(store, "rights", now=NOON + DAY)
    with pytest.raises(StoreUnfit, match="refuses these credentials") as refusal:
        open_dedup(f"redis://dedup:hunter3@{place}")
    assert "hunter3" not in str(refusal.value)
