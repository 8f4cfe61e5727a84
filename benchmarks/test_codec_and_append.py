"""Small figures for whoever works on the codec or the SQLite store: ``.venv/bin/python -m pytest benchmarks`` (pytest-benchmark).

Measured: encoding and decoding one journalled model call of about 1.7 KB, and one durable append of it. There is no bound
and no bar; they show where a change in the table of ``python -m benchmarks`` comes from.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import ModelRequest, ModelResponse, facts
from intentlog.agents.app import runtime_codec
from intentlog.eventlog import ANY, EventLog, open_log

from .workload import ANSWER, prompt

Benchmark = Callable[..., Any]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    opened = open_log(f"sqlite:///{tmp_path / 'append.db'}")
    yield opened
    opened.close()


def cached() -> facts.ModelCallCached:
    request = ModelRequest([{"role": "user", "content": prompt("o-1", 1_000, "Where is it?")}], "in-process", "at-once")
    return facts.ModelCallCached(7, 0, 1_700_000_000_000_000, b"d" * 32, request, ModelResponse(ANSWER, "at-once"))


def test_encode(benchmark: Benchmark) -> None:
    codec, fact = runtime_codec(), cached()
    benchmark(codec.encode, fact)


def test_decode(benchmark: Benchmark) -> None:
    codec, fact = runtime_codec(), cached()
    name, schema, blob = codec.encode(fact)
    assert fact == benchmark(codec.decoder(name, schema), blob)


def test_append(benchmark: Benchmark, log: EventLog) -> None:
    codec, fact, ids = runtime_codec(), cached(), itertools.count(1)
    benchmark(lambda: log.append("bench-one", [codec.stage(fact, event_id=next(ids).to_bytes(16, "big"))], ANY))
