"""How answers look: whole in JSON, short and harmless on a terminal."""

from __future__ import annotations

import enum
import json
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import attrs
import pytest

from intentlog.agents.commands_approvals import _COLUMNS as QUESTIONS
from intentlog.agents.commands_dead_letters import _COLUMNS as LETTERS
from intentlog.agents.commands_intents import _COLUMNS as INTENTS
from intentlog.eventlog import printing
from intentlog.eventlog.printing import Column, length, moment, one_line, plain, table, to_json


class Colour(enum.Enum):
    RED = "red"


@attrs.frozen
class Point:
    x: int
    tags: frozenset[str]


@pytest.mark.parametrize(
    "value, shown",
    [
        (b"\x00\xff", {"$bytes": "AP8="}),
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "2026-01-02T03:04:05.000006+00:00"),
        (timedelta(seconds=1.5), 1.5),
        (Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Point(1, frozenset("ba")), {"x": 1, "tags": ["a", "b"]}),
        ({1: (2, 3), Colour.RED: None}, {"1": [2, 3], "red": None}),
        (float("inf"), "inf"),
        (2**70, 2**70),
        (True, True),
    ],
)
def test_json_holds_every_value_whole(value, shown):
    assert shown == plain(value)
    assert shown == json.loads(to_json(value))


def test_json_of_a_lone_surrogate_can_be_printed():
    assert '"\\ud800é"' != to_json("\ud800é")
    assert "\ud800é" == json.loads(to_json("\ud800é").encode("utf-8"))


def test_text_that_is_not_ascii_stays_readable_in_json():
    assert '{"name": "Zoë"}' == to_json({"name": "Zoë"})


@pytest.mark.parametrize(
    "value, shown",
    [("a\nb", "a\\nb"), ("\x1b[31mred", "\\x1b[31mred"), ("a\u202eb", "a\\u202eb"), (b"abc", "3 bytes"), ({"a": "é"}, '{"a": "é"}'), (None, "null"), ("", "")],
)
def test_one_line_is_one_harmless_line(value, shown):
    assert shown == one_line(value)


def test_one_line_is_cut_by_cells_not_characters():
    assert "漢字…" == one_line("漢字漢字漢字", 6)


@pytest.mark.parametrize("micros, shown", [(0, "0 ms"), (999, "0.999 ms"), (12_000, "12 ms"), (61_000_000, "1 min 1 s"), (86_400_000_000, "24 h 0 min")])
def test_lengths_of_time_read_well(micros, shown):
    assert shown == length(micros)


def test_moments_are_utc_to_the_millisecond():
    assert "1970-01-01 00:00:01.500" == moment(1_500_000)


def test_a_table_in_a_pipe_is_whole(capsys):
    table([Column("name", gives=True), Column("n", right=True)], [("x" * 300, 5), ("y", 10)])
    lines = capsys.readouterr().out.splitlines()
    assert ["name" + " " * 296 + "   n", "x" * 300 + "   5", "y" + " " * 299 + "  10"] == lines


def test_a_table_on_a_terminal_fits_and_keeps_its_ids(capsys, monkeypatch):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.setattr(printing, "width", lambda: 40)
    monkeypatch.setenv("NO_COLOR", "1")
    table([Column("id"), Column("why", gives=True)], [("accounts-acct-42", "because of " + "y" * 80)])
    lines = capsys.readouterr().out.splitlines()
    assert "accounts-acct-42  because of yyyyyyyyyy…" == lines[1]
    assert max(map(len, lines)) <= 40


LONG = ("25ddf24b-d820-53e2-acac-e3a9906b9fd8", "accounts-acct-42", "charge_the_card", "DISTRUSTED", 12, "23 h 59 min", "because of " + "y" * 80)


def test_an_id_is_whole_at_80_columns_and_what_tells_goes_below(capsys, monkeypatch):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.setattr(printing, "width", lambda: 80)
    monkeypatch.setenv("NO_COLOR", "1")
    table(INTENTS, [LONG])
    head, row, below = capsys.readouterr().out.splitlines()
    assert ["intent", "stream", "status", "tries", "age"] == head.split()
    assert row.startswith("25ddf24b-d820-53e2-acac-e3a9906b9fd8  accou")
    assert below.startswith("    tool charge_the_card  why because of yyy")
    assert max(map(len, (head, row, below))) <= 80


def test_a_table_that_fits_has_nothing_below(capsys, monkeypatch):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.setattr(printing, "width", lambda: 120)
    monkeypatch.setenv("NO_COLOR", "1")
    table(INTENTS, [LONG])
    head, row = capsys.readouterr().out.splitlines()
    assert (True, True) == ("why" in head, row.endswith("…"))
    assert len(row) <= 120


@pytest.mark.parametrize("columns", [INTENTS, LETTERS, QUESTIONS])
def test_every_id_of_a_list_is_whole_at_80_columns(capsys, monkeypatch, columns):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.setattr(printing, "width", lambda: 80)
    monkeypatch.setenv("NO_COLOR", "1")
    ids = {"intent": LONG[0], "input id": f"intent {LONG[0]}", "stream": "accounts-k", "approval": "approval-117-30"}
    table(columns, [[ids.get(each.title, "z" * 30 if each.gives else "z" * 8) for each in columns]])
    told = capsys.readouterr().out
    assert [] == [each.title for each in columns if each.whole and ids[each.title] not in told]
    assert max(map(len, told.splitlines())) <= 80


def test_what_tells_is_cut_in_a_pipe_too(capsys):
    table([Column("id"), Column("why", below=True)], [("i" * 500, "y" * 20_000)])
    assert ["i" * 500, "y" * 399 + "…"] == capsys.readouterr().out.splitlines()[1].split()


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.setattr(printing, "on_terminal", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1mx\x1b[0m" == printing.styled("x", bold=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "x" == printing.styled("x", bold=True)
    monkeypatch.setattr(printing, "on_terminal", lambda: False)
    monkeypatch.delenv("NO_COLOR")
    assert "x" == printing.styled("x", bold=True)
