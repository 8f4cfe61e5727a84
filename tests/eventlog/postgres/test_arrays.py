"""Lists as the server reads them, and as the driver gives them back."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.eventlog.postgres.arrays import blobs, integers, texts
from tests.eventlog.postgres.opening import opened

_integers = st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1))
_blobs = st.lists(st.none() | st.binary(max_size=20)) | st.lists(st.binary(min_size=16, max_size=16)) | st.lists(st.none())
_texts = st.lists(st.none() | st.text(st.characters(exclude_characters="\0", codec="utf-8")))


@pytest.fixture(scope="module")
def database(postgres_server):
    url = postgres_server.create_database()
    log = opened(url)
    yield log._database
    log.close()
    postgres_server.drop_database(url)


@settings(max_examples=100, deadline=None, database=None)
@given(_integers, _blobs, _texts)
def test_every_list_comes_back_as_it_was(database, numbers, contents, words):
    sql = "SELECT $1::bigint[], $2::bytea[], $3::text[]"
    assert [(numbers, contents, words)] == database.rows(sql, (integers(numbers), blobs(contents), texts(words)))


def test_a_number_is_a_bigint_whatever_its_value(database):
    for number in (0, 1 << 15, 1 << 31, -(1 << 62)):
        assert [("bigint", number)] == database.rows("SELECT pg_typeof($1)::text, $1", (number,))


def test_what_has_no_wire_form_is_refused_before_it_is_sent(database):
    with pytest.raises(UnicodeEncodeError):
        texts(["\ud800"])
    with pytest.raises(struct.error):
        integers([1 << 63])
    assert [(1,)] == database.rows("SELECT 1")
