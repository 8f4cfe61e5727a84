"""Prefixes as ranges of an index."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import AppendRequest, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.sqlite.ranges import behind, next_text
from intentlog.eventlog.versions import NO_STREAM

TEXTS = st.text(alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\0%_~\ud7ff\ue000\U0010ffff")), max_size=6)


@given(TEXTS, TEXTS)
def test_exactly_what_begins_with_a_prefix_lies_between_the_prefix_and_its_bound(prefix: str, other: str) -> None:
    for text in (other, prefix + other):
        bound = behind(prefix)
        inside = prefix <= text and (isinstance(bound, bytes) or text.encode() < bound.encode())
        assert inside == text.startswith(prefix)


@given(TEXTS, TEXTS)
def test_nothing_lies_between_a_text_and_the_next_one(text: str, other: str) -> None:
    assert (other > text) == (other >= next_text(text))


NAMES = ["a-%", "a-%x", "a-_", "a-x", "a-x\U0010ffff", "a-x\U0010ffff\U0010ffff", "a-y", "a-\ud7ff", "a-\ue000", "a-\U0010fffe", "a-\U0010ffff", "a.b-1", "b-%"]


@pytest.mark.parametrize("prefix", ["", "a", "a-", "a-%", "a-_", "a-x", "a-x\U0010ffff", "a-\ud7ff", "a-\U0010ffff", "b-%", "c", "\U0010ffff", "A", "a-\ud800"])
def test_streams_with_awkward_names_are_found_by_prefix_in_code_point_order(tmp_path: Path, prefix: str) -> None:
    with closing(open_log(f"sqlite:///{tmp_path}/log.db")) as log:
        log.append_batch([AppendRequest([StreamAppend(name, [NewEvent(bytes(16), "e", 1, b"")], NO_STREAM)]) for name in NAMES])
        assert list(log.streams(prefix)) == sorted(name for name in NAMES if name.startswith(prefix))
