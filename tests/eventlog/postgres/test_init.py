"""``eventlog init`` and the reading commands on PostgreSQL."""

from __future__ import annotations

import json

import psycopg
import pytest
from click.testing import CliRunner, Result

from intentlog.eventlog.cli import group
from intentlog.eventlog.testing.maker import events
from tests.eventlog.postgres.opening import opened


def call(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def with_password(url: str) -> str:
    return url.replace("//postgres@", "//postgres:hunter2@")


def test_init_makes_a_log_and_says_so_once(postgres_url):
    url = with_password(postgres_url)
    first, second = call("init", "--log", url), call("init", "--log", url, "--json")
    assert (0, 0) == (first.exit_code, second.exit_code)
    assert "just now" in first.stdout
    assert {"url": url.replace("hunter2", "***"), "made": False} == json.loads(second.stdout)
    assert "hunter2" not in first.output + second.output


def test_init_mends_a_log_that_was_restored_elsewhere(postgres_url):
    log = opened(postgres_url)
    log.append("a-1", events(1), -1)
    log.close()
    run(postgres_url, "UPDATE intentlog.events SET position = position + (1000000::bigint << 20)")
    refused = call("tail", "--log", postgres_url)
    assert (3, True) == (refused.exit_code, "eventlog init" in refused.stderr)
    assert json.loads(call("init", "--log", postgres_url, "--json").stdout)["made"]
    assert not json.loads(call("init", "--log", postgres_url, "--json").stdout)["made"]
    assert 0 == call("tail", "--log", postgres_url).exit_code


@pytest.mark.parametrize(
    "change, code, told",
    [
        ("?schema=Bad", 2, "schema='Bad'"),
        ("?nonsense=1", 2, "pool_size"),
        ("_not", 3, "createdb"),
        ("?port=1", 3, "no connection"),
    ],
)
def test_init_says_what_is_wrong_with_exit_codes_for_usage_and_for_the_rest(postgres_url, change, code, told):
    done = call("init", "--log", with_password(postgres_url) + change)
    assert (code, "") == (done.exit_code, done.stdout)
    assert told in done.stderr
    assert "hunter2" not in done.stderr


def test_init_refuses_a_log_of_a_newer_release(postgres_url):
    call("init", "--log", postgres_url)
    run(postgres_url, "UPDATE intentlog.meta SET schema_version = 99")
    done = call("init", "--log", postgres_url)
    assert (3, True) == (done.exit_code, "Upgrade intentlog" in done.stderr)


def test_reading_commands_make_nothing_and_open_transactions_that_cannot_write(postgres_url):
    done = call("tail", "--log", postgres_url)
    assert (3, True) == (done.exit_code, "eventlog init" in done.stderr)
    log = opened(postgres_url)
    log.append("a-1", events(3), -1)
    log.close()
    reading = opened(postgres_url, read_only=True)
    assert [("on",)] == reading._database.rows("SHOW transaction_read_only")
    reading.close()
    lines = call("tail", "--log", postgres_url, "--json", "-n", "2").stdout.splitlines()
    assert [1, 2] == [json.loads(line)["version"] for line in lines]
