"""What a ``sqlite://`` URL may say."""

from __future__ import annotations

from pathlib import Path

import pytest

from intentlog.eventlog.errors import InvalidUrl
from intentlog.eventlog.sqlite.address import Address, parse_address


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sqlite:///rel.db", Address(Path("rel.db"))),
        ("sqlite:////abs/log.db", Address(Path("/abs/log.db"))),
        ("sqlite:///with%20space%3F.db", Address(Path("with space?.db"))),
        ("sqlite:///log.db?synchronous=normal", Address(Path("log.db"), "normal")),
        ("sqlite:///log.db?synchronous=OFF&busy_timeout_ms=250", Address(Path("log.db"), "off", 0.25)),
    ],
)
def test_a_url_names_a_file_and_how_to_treat_it(url: str, address: Address) -> None:
    assert parse_address(url) == address


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("sqlite://", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///?synchronous=full", "names no file"),
        ("sqlite://host/log.db", "names no file"),
        ("sqlite:log.db", "is no SQLite URL"),
        ("sqlite:///folder/", "names no file"),
        ("sqlite:///a%00b.db", "names no file"),
        ("sqlite:///:memory:", "memory://"),
        ("sqlite:///log.db?sync=full", "Unknown parameter 'sync'"),
        ("sqlite:///log.db?sync=full", "busy_timeout_ms, synchronous"),
        ("sqlite:///log.db?synchronous=extra", "full, normal, off"),
        ("sqlite:///log.db?busy_timeout_ms=-1", "whole number of milliseconds"),
        ("sqlite:///log.db?busy_timeout_ms=", "whole number of milliseconds"),
    ],
)
def test_a_url_that_says_something_else_is_refused_with_a_way_out(url: str, hint: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse_address(url)
    assert hint in str(caught.value)
