"""The tests' own Redis: durable or not as asked, there again after a kill, and never in the way of somebody's keys."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import redis

from tests.services.redis import NoRedis, RedisServer, binary, shared


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as made:
        yield made


def put(url: str, **given: str) -> None:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        client.mset(dict(given))


def held(url: str) -> list[str]:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return sorted(client.scan_iter())


@pytest.mark.parametrize("durable, expected", [(True, ["a", "b"]), (False, [])])
def test_what_was_acknowledged_survives_a_kill_if_that_was_asked_for(server, durable, expected):
    server.start(durable)
    put(server.url, a="1", b="2")
    server.kill()
    with pytest.raises(redis.ConnectionError):
        held(server.url)
    server.start(durable)
    assert expected == held(server.url)


def test_a_restart_keeps_the_address_and_what_is_durable(server):
    server.start(durable=True)
    put(server.url, a="1")
    server.restart(durable=True)
    assert ["a"] == held(server.url)


def test_a_kill_cuts_whoever_waits(server):
    server.start()
    with redis.Redis.from_url(server.url) as client, client.pubsub() as waiting:
        waiting.subscribe("hints")
        assert waiting.get_message(timeout=10) is not None
        server.kill()
        with pytest.raises(redis.ConnectionError):
            waiting.get_message(timeout=10)


def test_its_folder_is_of_an_unprivileged_account_and_so_is_what_it_writes(server):
    server.start(durable=True)
    put(server.url, a="1")
    owners = {path.stat().st_uid for path in (server.folder, *server.folder.rglob("*.aof"))}
    assert {server.folder.stat().st_uid} == owners
    assert 0 not in owners
    assert os.geteuid() in (0, *owners)


def test_nothing_is_left_of_a_server_that_was_closed():
    with RedisServer() as server:
        server.start()
    assert not server.folder.exists()
    with pytest.raises(redis.ConnectionError):
        held(server.url)


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_finds_the_database_empty(redis_url, turn):
    assert [] == held(redis_url)
    put(redis_url, left=str(turn))


def test_the_keys_of_somebody_else_are_never_removed(server):
    put(server.start().url, theirs="1")
    with pytest.raises(NoRedis, match=r"database 0 .* holds 1 keys, which tests would remove"):
        shared(server.url)
    assert server.url.removesuffix("/0") + "/3" == shared(server.url, worker="gw3").url


def test_where_none_is_installed_the_error_names_the_way_out(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NoRedis, match=r"run \.ci/services as root .* or set EVENTLOG_TEST_REDIS_URL"):
        binary()
