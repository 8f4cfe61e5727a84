"""What stands beside the events is checked too: columns, categories, wake-ups and checkpoints."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group as cli
from intentlog.eventlog.log import Wake
from intentlog.eventlog.versions import ANY
from intentlog.replay.verify import FaultKind, StreamReport, verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

APP = app_of(paying)
Edit = Callable[[str], None]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[World]:
    world = World(f"sqlite:///{tmp_path}/t.db")
    world.story(APP, RefundAsked("o-1", 4200))
    yield world
    world.log.close()


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    def run(sql: str) -> None:
        with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
            assert 1 <= connection.execute(sql).rowcount

    return run


def found(world: World) -> dict[FaultKind, tuple[str, int, str]]:
    return {each.kind: (each.stream, each.version, each.text) for report in verify_all(world.log, APP) for each in report.faults.values()}


def reports(world: World) -> list[StreamReport]:
    return list(verify_all(world.log, APP))


def test_a_log_that_is_worked_on_is_sound_at_every_stage(kept):
    assert {} == found(kept)
    kept.send(APP, RefundAsked("o-2", 7))
    assert {} == found(kept)
    kept.run(APP, effector=False)
    assert {} == found(kept)
    assert [STREAM] == [report.stream for report in reports(kept)]


def test_a_checkpoint_beyond_the_log_is_found(kept, edit):
    kept.log.checkpoints.save("orders", 1)
    edit("UPDATE checkpoints SET position = 99999 WHERE name = 'orders'")
    stream, _, text = found(kept)[FaultKind.CHECKPOINT]
    assert ("", True) == (stream, text.startswith("checkpoint 'orders' at position 99999 is ahead of the last event"))


@pytest.mark.parametrize(("name", "seen"), [("effector", True), ("effector:accounts:other", True), ("effector:other", False), ("mine", False)])
def test_an_effectors_checkpoint_beyond_an_open_intent_is_found(world, name, seen):
    world.send(APP, RefundAsked("o-1", 1))
    world.run(APP, effector=False)
    world.log.checkpoints.save(name, world.log.last_position())
    assert ({FaultKind.CHECKPOINT} if seen else set()) == set(found(world))


@pytest.mark.parametrize(
    "sql", ["UPDATE schedule SET wake_at = NULL", "DELETE FROM schedule WHERE queue = 'turn'", "UPDATE schedule SET wake_at = 4102444800000000"]
)
def test_an_input_that_nobody_will_be_woken_for_is_found(kept, edit, sql):
    kept.send(APP, RefundAsked("o-2", 7))
    edit(sql)
    stream, version, text = found(kept)[FaultKind.NO_WAKE]
    assert (STREAM, kept.log.head(STREAM), True) == (stream, version, "Any input" in text)


def test_a_wait_whose_deadline_nobody_will_be_woken_for_is_found(world):
    world.send(APP, RefundAsked("o-1", 1))
    world.run(APP, effector=False)
    world.log.append(STREAM, [], ANY, wakes=[Wake("turn", None)])
    assert {FaultKind.NO_WAKE} == set(found(world))


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        ("UPDATE events SET recorded_at = 'noon' WHERE version = 4", FaultKind.COLUMN, "recorded_at is 'noon'"),
        ("UPDATE events SET recorded_at = 9223372036854775807 WHERE version = 4", FaultKind.COLUMN, "outside of the years 1 to 9999"),
        ("UPDATE events SET recorded_at = -9223372036854775807 WHERE version = 4", FaultKind.COLUMN, "outside of the years 1 to 9999"),
        ("UPDATE events SET event_id = x'01' WHERE version = 4", FaultKind.COLUMN, "event_id is b'\\x01', where 16 bytes belong"),
        ("UPDATE events SET event_id = 'abc' WHERE version = 4", FaultKind.COLUMN, "event_id is 'abc'"),
        ("UPDATE events SET correlation = 5 WHERE version = 4", FaultKind.COLUMN, "correlation is"),
        ("UPDATE events SET schema = 'one' WHERE version = 4", FaultKind.COLUMN, "schema is 'one'"),
        ("UPDATE events SET type = x'00' WHERE version = 4", FaultKind.COLUMN, "type is b'\\x00'"),
        ("UPDATE events SET data = 5 WHERE version = 4", FaultKind.COLUMN, "data is 5, where a blob belongs"),
        ("UPDATE events SET version = 4.5 WHERE version = 4", FaultKind.COLUMN, "version is 4.5"),
        ("UPDATE events SET version = 'x' WHERE version = 4", FaultKind.COLUMN, "version is 'x'"),
        ("UPDATE streams SET category = 'other'", FaultKind.CATEGORY, "under its category 'accounts'"),
        ("UPDATE checkpoints SET position = 'x'", FaultKind.COLUMN, "position is 'x'"),
    ],
)
def test_an_odd_row_is_a_fault_and_every_command_stays_readable(kept, edit, tmp_path, sql, kind, words):
    kept.log.checkpoints.save("orders", 1)
    edit(sql)
    assert words in found(kept)[kind][2]
    url = f"sqlite:///{tmp_path}/t.db"
    for command in (["verify"], ["verify", "--json"], ["tail"], ["tail", "--json"], ["show", STREAM], ["show", STREAM, "--json"]):
        result = CliRunner().invoke(cli, [*command, "--log", url])
        # Without a last version a stream has no end to show: that is said, naming the row.
        expected = 1 if command[0] == "verify" else 3 if command[0] == "show" and "version is 'x'" in words else 0
        assert (expected, False) == (result.exit_code, "unexpected" in result.output), result.output


def test_an_unreadable_moment_is_said_to_be_none(kept, edit, tmp_path):
    edit("UPDATE events SET recorded_at = 'noon' WHERE version = 4")
    for command in (["tail"], ["show", STREAM]):
        assert "(no time)" in CliRunner().invoke(cli, [*command, "--log", f"sqlite:///{tmp_path}/t.db"]).output
