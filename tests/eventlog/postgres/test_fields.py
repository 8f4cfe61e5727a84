"""Payloads read by the database: the same as the codec reads, whatever they hold, and never an error."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from intentlog.eventlog import wire
from intentlog.eventlog._shapes import Refused
from intentlog.eventlog.opening import prepare_log
from tests.eventlog.values import anything
from tests.services.postgres import Databases

PATIENT = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def database(postgres_server: Databases) -> Iterator[psycopg.Connection]:
    """A connection to a database with a log in it, and nothing in its search path."""
    url = postgres_server.create_database()
    prepare_log(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = ''")
        yield connection
    postgres_server.drop_database(url)


@pytest.fixture(autouse=True)
def long_integers() -> Iterator[None]:
    """Hypothesis shows what it draws, however many digits that has."""
    usual = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(usual)


def read_by(database: psycopg.Connection, data: bytes) -> Any:
    """What ``fields`` makes of it, numbers exact."""
    (text,) = database.execute("SELECT intentlog.fields(%b)::text", (data,)).fetchone() or (None,)
    return None if text is None else json.loads(text, parse_int=Decimal, parse_float=Decimal)


@attrs.frozen(eq=False)
class Double:
    """Any decimal number that reads as exactly this one: Python writes the shortest, PostgreSQL sometimes all of its digits."""

    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decimal) and float(other) == self.value

    __hash__ = None  # type: ignore[assignment]


def in_json(value: Any) -> Any:
    """What ``fields`` promises for a value of the codec's."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        return {"$text": base64.b64encode(raw).decode()} if "\0" in value or raw.decode("utf-8", "replace") != value else value
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Double(value) if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime | time):
        return value.replace(tzinfo=None).isoformat() + zone(value.tzinfo)
    if isinstance(value, timedelta):
        return Decimal((value.days * 86400 + value.seconds) * 10**6 + value.microseconds) / 10**6
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value).replace("e", "E") if isinstance(value, Decimal) else str(value)
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: wire.write(wire.describe(pair[0])))
        return {key_text(in_json(key)): in_json(inner) for key, inner in pairs}
    if isinstance(value, set | frozenset):
        return [in_json(each) for each in sorted(value, key=lambda each: wire.write(wire.describe(each)))]
    return [in_json(each) for each in value]


def zone(of: tzinfo | None) -> str:
    if isinstance(of, ZoneInfo):
        return f"[{of.key}]"
    return "" if of is None else datetime(2026, 1, 1, tzinfo=of).isoformat()[19:]


def key_text(key: Any) -> str | Any:
    """A key as text: itself, or its JSON; the exact one of other kinds is compared apart, so only what stands still here."""
    if isinstance(key, str):
        return key
    if isinstance(key, Decimal):
        return str(key)
    if isinstance(key, list):
        return "[" + ", ".join(key_text(each) if not isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in key) + "]"
    return json.dumps(key, ensure_ascii=False)


EDGES = {
    "integers": [10**5000, -(10**400), 2**63, 2**64 - 1, -(2**63), 127, 128, 255, 256, 65536, 2**32, -1, -32, -33, -129, -32769, -(2**31) - 1],
    "floats": [5e-324, 1.7976931348623157e308, 0.1, -0.0, math.inf, -math.inf, math.nan],
    "texts": ["", "é", "a\0b", "\ud800", "x" * 40, "x" * 70_000, b"\0" * 300],
    "decimals": [Decimal(text) for text in ("1E+5", "-0", "sNaN", "-Infinity", "1.00")],
    "lengths": [timedelta.min, timedelta.max, timedelta(microseconds=-1)],
    "long": list(range(20_000)),
    "keys": {1: "int", "1": "text", b"a": "bytes", "\0": "nul", (1, "é"): "tuple", False: "bool"},
    "deep": wire.read(b"\x91" * 90 + b"\x00"),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_database_reads_values_at_the_edges_as_the_codec_does(database, name):
    data = wire.write(wire.describe(EDGES[name]))
    assert in_json(wire.read(data)) == read_by(database, data)


@PATIENT
@given(anything)
@example(2.991910973230999e16)
def test_the_database_reads_every_value_as_the_codec_does(database, value):
    data = wire.write(wire.describe(value))
    assert in_json(wire.read(data)) == read_by(database, data)


@PATIENT
@given(st.binary(max_size=40))
@example(b"")
@example(b"\x01\x01")
@example(b"\xc1")
@example(b"\xdd\xff\xff\xff\xff")
@example(b"\xd9\x05abc")
@example(b"\xa2\xff\xfe")
@example(b"\x91" * 2_000 + b"\x01")
@example(wire.write(msgspec.msgpack.Ext(5, b"\x07")))
@example(wire.write(msgspec.msgpack.Ext(8, b"no uuid")))
def test_bytes_that_are_no_payload_are_no_error(database, data):
    found = read_by(database, data)
    try:
        wire.read(data)
    except Refused:
        return
    assert found is not None or data == b"\xc0"


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"\xca\x3f\x80\x00\x00", Decimal(1)),
        (b"\xca\x00\x00\x00\x01", Decimal(repr(2.0**-149))),
        (b"\xd0\x80", Decimal(-128)),
        (b"\xd1\xff\x7f", Decimal(-129)),
        (b"\xcc\xff", Decimal(255)),
        (b"\xde\x00\x01\xa1a\x01", {"a": Decimal(1)}),
        (b"\xdf\x00\x00\x00\x01\xa1a\xc0", {"a": None}),
        (b"\xdb\x00\x00\x00\x01a", "a"),
        (wire.write(msgspec.msgpack.Ext(99, b"later")), {"$extension": Decimal(99), "$bytes": "bGF0ZXI="}),
    ],
)
def test_forms_that_the_codec_never_writes_are_read_too(database, data, expected):
    assert expected == read_by(database, data)


def test_bytes_of_null_are_null_and_no_bytes_are_nothing(database):
    rows = database.execute(r"SELECT intentlog.fields('\xc0') = 'null', intentlog.fields('\x91') IS NULL, intentlog.fields(NULL) IS NULL").fetchone()
    assert (True, True, True) == rows
