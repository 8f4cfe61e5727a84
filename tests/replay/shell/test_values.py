"""A value reads as code would write it, the same every time, and in bounds."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import NamedTuple

import attrs
import pytest
from rich.cells import cell_len
from rich.console import Console

from intentlog.replay.shell.rendering import two_columns
from intentlog.replay.shell.values import Value, brief


class Colour(enum.Enum):
    RED = "red"


class Place(NamedTuple):
    row: int
    column: int


@attrs.frozen
class Order:
    order_id: str
    lines: tuple[int, ...] = ()


class Sly:
    def __repr__(self) -> str:
        raise ValueError("no")


SHOWN = [
    ({"b", "a"}, "{'a', 'b'}"),
    (frozenset(), "frozenset()"),
    ((1,), "(1,)"),
    ({"a": [1, None]}, "{'a': [1, None]}"),
    (Order("o-1", (1, 2)), "Order(order_id='o-1', lines=(1, 2))"),
    (Place(1, 2), "Place(row=1, column=2)"),
    (Colour.RED, "Colour.RED"),
    (Decimal("1.00"), "Decimal('1.00')"),
    (datetime(2026, 1, 31, 9, 14, tzinfo=UTC), "2026-01-31T09:14:00+00:00"),
    (timedelta(minutes=5), "0:05:00"),
    (b"abc", "b'abc'"),
    (b"x" * 3_000, "<3,000 bytes, sha256 e1a5e2dd92a9…>"),
    ("\x1b[2J\u202e", r"'\x1b[2J\u202e'"),
    (Sly(), "<Sly, whose repr fails with ValueError>"),
    (list(range(100)), f"[{', '.join(map(str, range(40)))}, … 60 more]"),
]


@pytest.mark.parametrize(("value", "expected"), SHOWN, ids=[expected[:20] for _, expected in SHOWN])
def test_a_value_is_written_on_a_line(value, expected):
    assert expected.split(", sha256")[0] == brief(value, 1_000).split(", sha256")[0]


def test_a_line_is_cut_where_it_is_to_end():
    assert "{'a': 'xxx…" == brief({"a": "x" * 100}, 11)


def test_what_does_not_fit_goes_over_several_lines():
    console = Console(file=(file := StringIO()), width=30, color_system=None)
    console.print(Value(Order("o-1", tuple(range(6)))))
    assert "Order(\n  order_id='o-1',\n  lines=(0, 1, 2, 3, 4, 5)\n)\n" == file.getvalue()


def test_a_value_within_itself_ends():
    loop: list[object] = []
    loop.append(loop)
    assert "…" in brief(loop)


def test_values_stand_under_each_other_whatever_their_names_are_made_of():
    named = {"a": "1", "red\x1b[31m": "2", "日本": "3"}
    lines = [line.plain for line in two_columns(named)]
    assert "  red\\x1b[31m  2" == lines[1]
    assert 1 == len({cell_len(line) for line in lines})
    long = [line.plain for line in two_columns({"k" * 300: "1", "a": "2"})]
    assert ("k" * 300 + "  1", True) == (long[0].strip(), cell_len(long[1]) < 60)
