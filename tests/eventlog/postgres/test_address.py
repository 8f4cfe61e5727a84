"""What a PostgreSQL URL says."""

from __future__ import annotations

import pytest

from intentlog.eventlog.errors import InvalidUrl
from intentlog.eventlog.masking import masked_url
from intentlog.eventlog.postgres.address import parse_address


def test_a_bare_url_has_sensible_values():
    found = parse_address("postgresql://me@db.example:5433/log")
    assert ("intentlog", 10, 30.0, 60.0) == (found.schema, found.pool_size, found.pool_timeout, found.statement_timeout)
    assert ("me", "db.example", "5433", "log") == tuple(found.server[key] for key in ("user", "host", "port", "dbname"))
    assert "10" == found.server["connect_timeout"], "libpq itself would wait for ever"


def test_our_parameters_are_taken_out_and_the_others_are_left_to_libpq():
    found = parse_address("postgres:///log?host=/run/pg&schema=my_log&pool_size=3&sslmode=require&pool_timeout=2.5&statement_timeout=0&connect_timeout=3")
    assert ("my_log", 3, 2.5, 0.0) == (found.schema, found.pool_size, found.pool_timeout, found.statement_timeout)
    assert {"host": "/run/pg", "dbname": "log", "sslmode": "require", "connect_timeout": "3"} == dict(found.server)


def test_several_hosts_are_libpq_s_affair():
    assert "one,two" == parse_address("postgresql://one:1,two:2/log?target_session_attrs=read-write").server["host"]


@pytest.mark.parametrize(
    "parameters, named",
    [
        ("schema=Big", "schema='Big'"),
        ("schema=", "schema=''"),
        ("schema=pg_mine", "pg_"),
        ("schema=1st", "schema='1st'"),
        ("schema=a%3Bb", "a;b"),
        ("schema=" + "x" * 64, "63"),
        ("pool_size=0", "pool_size='0'"),
        ("pool_size=-1", "whole number"),
        ("pool_size=1001", "1000"),
        ("pool_size=%C2%B2", "whole number"),
        ("pool_timeout=soon", "seconds"),
        ("statement_timeout=-1", "seconds"),
        ("statement_timeout=1e3", "seconds"),
        ("schema=a&schema=b", "twice"),
        ("scheme=a", "schema"),
        ("synchronous=off", "pool_size"),
    ],
)
def test_a_bad_parameter_is_named_with_what_would_be_right(parameters, named):
    with pytest.raises(InvalidUrl) as refused:
        parse_address(f"postgresql://me:hunter2@db/log?{parameters}")
    assert named in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["postgresql:/db", "postgresql", "mysql://db/log", "postgresql://db:x:y/log%zz"])
def test_what_is_no_url_is_shown_with_one(url):
    with pytest.raises(InvalidUrl, match="postgresql://user@host"):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db/log",
        "postgresql://me:hunter2@db/log?nonsense=1",
        "postgresql://me:hun@ter2@db/log",
        "postgresql://me:hunter2@db/log?sslpassword=hunter2&schema=X",
        "postgresql://db/log?password=hunter2&nonsense=1",
        "postgresql://me:hunter2%zz@db/log",
        "postgresql://me:hunter2@[::1/log",
        "postgresql://me:hunter2/abc@127.0.0.1:5871/x",
        "postgresql://me:hun ter2@127.0.0.1:5871/x",
        "postgresql://me:x?hunter2@db/log",
        "postgresql://me:1234?hunter2=1&hunter2@db/log",
        "postgresql://me:x@hunter2/y@db/log",
        "postgresql://me:hunter2",
        "postgresql://me@db:hunter2/log",
    ],
)
def test_a_password_is_shown_to_nobody(url):
    try:
        told = parse_address(url).shown
    except InvalidUrl as error:
        told = f"{error!r} {error.__cause__!r} {error.__context__ if not error.__suppress_context__ else ''}"
    assert "hunter2" not in told
    assert "ter2" not in told
    assert "hunter2" not in repr(parse_address("postgresql://me:hunter2@db/log"))


def test_masking_leaves_everything_else():
    assert "postgresql://me:***@a:1,b:2/log?schema=x&password=***" == masked_url("postgresql://me:pw@a:1,b:2/log?schema=x&password=pw")
    assert "postgresql://me@db/log" == masked_url("postgresql://me@db/log")


def test_spaces_and_plus_signs_reach_libpq_as_they_are_meant():
    found = parse_address("postgresql://me@db/log?application_name=my%20app&password=a+b%2Bc&options=-c%20work_mem%3D8MB%20-c%20jit%3Doff")
    assert ("my app", "a+b+c", "-c work_mem=8MB -c jit=off") == tuple(found.server[key] for key in ("application_name", "password", "options"))
