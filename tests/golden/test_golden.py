"""What was written once is read for ever, and nothing is written that is not kept here."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from intentlog.eventlog.codec import Codec
from intentlog.eventlog.registry import EventRegistry, event_name
from tests.golden import corpus, evolving

LINES = corpus.recorded()
#: (type, fields) → class: two examples may use one name for different events.
CLASSES: dict[str, list[type]] = {}
for each in corpus.registered():
    CLASSES.setdefault(event_name(each)[0], []).append(each)


def decoded(line: corpus.Line) -> Any:
    """The instance, read by whichever program's class takes it."""
    problems: list[Exception] = []
    for cls in CLASSES[line.type]:
        try:
            return corpus.codec_of(cls).decode(line.type, line.version, bytes.fromhex(line.hex))
        except Exception as problem:
            problems.append(problem)
    raise ExceptionGroup(f"nobody reads {line.type} version {line.version} any more", problems)


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.type}-{line.version}-{line.variant}")
def test_every_recorded_instance_is_read_with_all_its_fields(line):
    read = decoded(line)
    codec = corpus.codec_of(type(read))
    kind, version, blob = codec.encode(read)
    assert line.type == kind
    was, now = codec.tree(bytes.fromhex(line.hex)), codec.tree(blob)
    if line.version == version:  # a later field with a default may have come to it; none may be gone or changed
        assert was == {name: now[name] for name in was}
    assert attrs.has(type(read))


def test_everything_that_is_registered_is_in_the_corpus():
    lacking = [(line.type, line.version, line.variant) for line in corpus.missing()]
    assert [] == lacking, "python -m tests.golden.corpus adds them; commit corpus.json with the event"


def test_no_line_was_written_twice():
    keys = [(line.type, line.version, line.variant, line.hex) for line in LINES]
    assert len(keys) == len(set(keys))


def test_a_new_runtime_type_would_be_missed():
    from intentlog.eventlog.registry import event

    @event("never.recorded", version=1)
    class Never:
        a: int

    assert [("never.recorded", 1)] * 3 == [(line.type, line.version) for line in corpus.lines_of(Never)]
    assert ("never.recorded", 1) not in {(line.type, line.version) for line in LINES}


@pytest.mark.parametrize("version, scale", [(1, "unknown"), (2, "unknown")])
def test_old_versions_are_upcast(version, scale):
    (line,) = [line for line in LINES if (line.type, line.version) == ("parcel.weighed", version)]
    assert evolving.Weighed(2500, scale) == decoded(line)
    old = evolving.as_it_was(version)
    assert bytes.fromhex(line.hex) == Codec(EventRegistry(type(old), upcasters=evolving.UPCASTERS[: version - 1])).encode(old)[2]
