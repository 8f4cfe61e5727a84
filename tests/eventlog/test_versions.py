"""What an expected version asks of a stream (S-3.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.versions import ANY, EMPTY, EXISTS, NO_STREAM, matches

heads = st.integers(EMPTY, 1_000)


@given(heads)
def test_any_fits_every_stream(head):
    assert matches(ANY, head)


@given(heads)
def test_exists_and_no_stream_are_opposites(head):
    assert matches(EXISTS, head) is not matches(NO_STREAM, head)


@given(heads)
def test_minus_one_means_no_stream(head):
    assert matches(NO_STREAM, head) is matches(EMPTY, head)


@given(heads, heads)
def test_a_number_fits_only_itself(expected, head):
    assert (expected == head) is matches(expected, head)


@pytest.mark.parametrize(("expected", "words"), [(NO_STREAM, "no stream"), (EXISTS, "an existing stream"), (ANY, "any version")])
def test_an_expectation_reads_well_in_an_error(expected, words):
    assert words == str(expected)
