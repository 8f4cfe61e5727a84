"""What is the memory store's own: how it closes, and that it needs nothing but its lock."""

from __future__ import annotations

import threading
import time

import pytest

from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.testing.maker import event, events, expect
from intentlog.eventlog.versions import ANY


def test_closing_ends_a_wait():
    log = open_memory()
    threading.Timer(0.05, log.close).start()
    begin = time.monotonic()
    with pytest.raises(LogUnavailable, match="memory://"):
        log.wait(0, 30)
    assert time.monotonic() - begin < 10


def test_a_read_covers_what_was_there_when_it_was_asked_for():
    log = open_memory()
    log.append("a-1", events(2), ANY)
    stream, whole = log.read("a-1"), log.read_all()
    log.append("a-1", [event()], ANY)
    assert [0, 1] == [found.version for found in stream]
    assert [0, 1] == [found.version for found in whole]


def test_an_append_needs_an_expected_version_it_understands():
    log = open_memory()
    for wrong in (None, "0", 1.5):
        with expect(TypeError) as refusal:
            log.append("a-1", [event()], wrong)  # type: ignore[arg-type]
        assert repr(wrong) in str(refusal.error)
    assert 0 == log.last_position()
