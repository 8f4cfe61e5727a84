"""Whatever a hand puts into one cell of an SQLite file, commands that read end as they are documented to, and say where it is."""

from __future__ import annotations

import functools
import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from intentlog.agents.loading import load_app
from intentlog.agents.queues import TURNS
from intentlog.agents.streams import Folder
from intentlog.eventlog import cli, open_log
from intentlog.replay.fold import state_at
from tests.cli.conftest import SHOP, call

STREAM, OTHER = "orders-bob", "orders-eve"
VERSION = 1
#: Text that is none in UTF-8, which SQLite keeps as it is.
BROKEN = "cast(x'61ff00' AS text)"
VALUES = {"null": "NULL", "integer": "5", "real": "1.5", "text": "'no such thing'", "blob": "x'00ff'", "broken": BROKEN}
#: What a column holds when nobody has touched it.
RIGHT = {
    "streams": {"id": {"integer"}, "name": {"text"}, "category": {"text"}},
    "events": {
        "position": {"integer"},
        "stream_id": {"integer"},
        "version": {"integer"},
        "event_id": {"blob"},
        "type": {"text"},
        "schema": {"integer"},
        "recorded_at": {"integer"},
        "correlation": {"blob", "null"},
        "causation": {"blob", "null"},
        "data": {"blob"},
    },
    "schedule": {
        "queue": {"text"},
        "name": {"text"},
        "wake_at": {"integer", "null"},
        "owner": {"text", "null"},
        "lease_until": {"integer", "null"},
        "token": {"integer"},
    },
    "snapshots": {"stream": {"text"}, "version": {"integer"}, "fingerprint": {"text"}, "data": {"blob"}},
    "checkpoints": {"name": {"text"}, "position": {"integer"}},
}
ROW = {
    "streams": f"name = '{STREAM}'",
    "events": f"version = {{version}} AND stream_id = (SELECT id FROM streams WHERE name = '{STREAM}')",
    "schedule": f"queue = '{TURNS}' AND name = '{STREAM}'",
    "snapshots": f"stream = '{STREAM}'",
    "checkpoints": "name = 'mine'",
}
APP = ("--app", "shop:app")
READING = {
    "state": ("state", STREAM, *APP),
    "show": ("show", STREAM, *APP),
    "why": ("why", STREAM, "run.completed", *APP),
    "diff": ("diff", STREAM, "0", "3", *APP),
    "bisect": ("bisect", STREAM, "run.completed >= 1", *APP),
    "replay": ("replay", "--all", *APP),
    "verify": ("verify", *APP),
    "verify without an app": ("verify", "--json"),
    "raw": ("raw", STREAM, *APP),
    "raw of one": ("raw", STREAM, str(VERSION), *APP),
    "raw as JSON": ("raw", STREAM, "--json"),
    "trace": ("trace", "order-o-1"),
    "search": ("search", "o-1"),
    "search in fields": ("search", "--field", "tool=ship", *APP),
    "stats": ("stats", "--events"),
    "streams": ("streams",),
    "tail": ("tail",),
    "tail as JSON": ("tail", "--json"),
    "bundle": ("bundle", STREAM, "-o", "case.bundle"),
    "intents": ("intents", "list", "--all"),
    "dead letters": ("dead-letters", "list"),
    "approvals": ("approvals", "list"),
}
#: Those that show events in another way only.
OF_EVENTS = ("raw of one", "raw as JSON", "tail as JSON", "search in fields", "verify without an app")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the shop and a log of two orders, with a row in each table."""
    folder = tmp_path_factory.mktemp("edited")
    (folder / "shop.py").write_text(SHOP)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.syspath_prepend(str(folder))
        patched.delitem(sys.modules, "shop", raising=False)
        patched.setattr(cli, "found", functools.cache(cli.found))  # two thousand calls look for the same commands
        call("init")
        call("send", "orders", "bob", "order.placed", '{"order_id": "o-1"}', "--id", "order-o-1", *APP)
        call("send", "orders", "eve", "order.placed", '{"order_id": "o-2"}', "--id", "order-o-2", *APP)
        assert 0 == call("run", "shop:app", "--until-idle").exit_code
        with closing(open_log("sqlite:///eventlog.db")) as log:
            app = load_app("shop:app")
            log.snapshots.save(STREAM, Folder(app.definitions["orders"]).snapshot(state_at(log, app, STREAM, VERSION)))
            log.schedule.wake(TURNS, STREAM, 1)
            log.checkpoints.save("mine", 2)
        with closing(sqlite3.connect("eventlog.db")) as file:
            file.execute("PRAGMA wal_checkpoint(truncate)")
        shutil.move("eventlog.db", "whole.db")
        yield folder


def edited(folder: Path, table: str, column: str, value: str, *, version: int = VERSION) -> str:
    """Put ``value`` into one row of a fresh copy; the wrong type that the cell has then, empty when SQLite refuses it or it is a right one."""
    for each in folder.glob("eventlog.db*"):
        each.unlink()
    shutil.copy(folder / "whole.db", folder / "eventlog.db")
    (folder / "case.bundle").unlink(missing_ok=True)
    where = ROW[table].format(version=version)
    with closing(sqlite3.connect(folder / "eventlog.db", isolation_level=None)) as file:
        try:
            assert 1 == file.execute(f"UPDATE {table} SET {column} = {value} WHERE {where}").rowcount
        except sqlite3.IntegrityError:
            return ""
        kinds = {kind for (kind,) in file.execute(f"SELECT typeof({column}) FROM {table}")} - RIGHT[table][column]
        if value == BROKEN:
            return "broken"
        return kinds.pop() if kinds else ""


CELLS = [(table, column) for table, columns in RIGHT.items() for column in columns]


@pytest.mark.parametrize(("table", "column"), CELLS)
def test_a_value_of_a_wrong_type_ends_no_command_in_an_unexpected_way(whole, table, column):
    assert "" == edited(whole, table, column, column)
    others = [("raw", OTHER, *APP), ("show", OTHER, *APP)]
    sound = [call(*words).stdout for words in others]
    told = []
    for named, value in VALUES.items():
        if not edited(whole, table, column, value):
            continue
        for name, words in READING.items():
            if (table == "events" or name not in OF_EVENTS) and (wrong := wrong_with(name, call(*words), table, column)):
                told.append(f"{name} with {table}.{column} = {named}: {wrong}")
        if sound != [call(*words).stdout for words in others] or call("verify", OTHER, *APP).exit_code not in (0, 1):
            told.append(f"another stream with {table}.{column} = {named} is not read as it was")
    assert not told, f"{len(told)}:\n" + "\n".join(told)


def wrong_with(name: str, done: Result, table: str, column: str) -> str:
    """What is wrong with how a command ended; empty when it ended as it is documented to."""
    said = " ".join(done.output.split())
    if not isinstance(done.exception, SystemExit | None) or "unexpected" in said or "Traceback" in said or done.exit_code not in (0, 1, 3):
        return f"it ended in an unexpected way, with {done.exit_code} {done.exception!r}: {said[-400:]}"
    if name.startswith("verify"):
        if done.exit_code != 1 or column not in said or not names_it(said, table):
            return f"it does not name the cell: {said[-400:]}"
    elif done.exit_code == 3 and not names_it(said, table):
        return f"it does not say where: {said[-400:]}"
    return ""


def names_it(said: str, table: str) -> bool:
    """Whether the row is named: an event by its stream and its version, any other by its table."""
    if f"table {table}" in said:
        return True
    if table == "streams":  # its name is gone, so that is what is not there
        return f"has no stream {STREAM!r}" in said
    return table == "events" and STREAM in said and bool(re.search(r"\bversions? [0-9\"]|\"version\": [0-9]", said))


def test_the_commands_have_something_to_tell_of_a_log_that_nobody_edited(whole):
    assert "" == edited(whole, "events", "data", "data")
    assert {name: (int(name in ("diff", "bisect")), True, "") for name in READING} == {
        name: (done.exit_code, bool(done.stdout), done.stderr) for name, done in ((name, call(*words)) for name, words in READING.items())
    }


DAMAGED = "cast(data || x'00ff' AS text)"


def test_verify_names_the_very_event_and_goes_on_behind_it(whole):
    edited(whole, "events", "data", DAMAGED)
    told = [json.loads(line) for line in call("verify", "--json", *APP).stdout.splitlines()]
    assert [(STREAM, 6), (OTHER, 6)] == [(each["stream"], each["events"]) for each in told]
    assert [[(VERSION, "column")], []] == [[(fault["version"], fault["kind"]) for fault in each["faults"]] for each in told]
    assert "data is text that is not UTF-8" in told[0]["faults"][0]["text"]


def test_raw_shows_a_damaged_column_byte_by_byte_beside_the_others(whole):
    edited(whole, "events", "data", DAMAGED)
    rows = call("raw", STREAM).stdout.splitlines()[1:]
    assert [True, False, True, True, True, True] == [row.endswith("its class") for row in rows]
    one = call("raw", STREAM, str(VERSION), "--whole")
    assert 1 == one.exit_code
    assert "type       intent.staged, schema 1" in one.stdout
    assert ", as text that is not UTF-8, SHA-256" in one.stdout
    assert one.stdout.count("00 ff  ") == 1


@pytest.mark.parametrize("value", ["'second'", "x'02'", BROKEN])
def test_an_event_whose_version_is_no_number_is_told_of_where_it_is_missing(whole, value):
    edited(whole, "events", "version", value)
    told = json.loads(call("verify", "--json", *APP).stdout.splitlines()[0])
    assert (STREAM, 5) == (told["stream"], told["events"])
    assert {("unseen", VERSION), ("column", VERSION)} <= {(fault["kind"], fault["version"]) for fault in told["faults"]}
    assert 7 == len(call("raw", STREAM).stdout.splitlines())
    assert "version is" in call("raw", STREAM, str(VERSION)).stdout


def test_a_tail_tells_of_an_edited_event_and_goes_on(whole):
    edited(whole, "events", "data", DAMAGED)
    lines = call("tail").stdout.splitlines()
    (line,) = [line for line in lines if "was edited by hand" in line]
    assert 12 == len(lines)
    assert f"{STREAM} {VERSION}  intent.staged  was edited by hand: data is text that is not UTF-8" in line
    assert line.endswith(f"See: eventlog raw {STREAM}")


def test_what_nobody_expected_and_no_edited_row_explains_is_told_as_it_is(whole, monkeypatch):
    edited(whole, "events", "data", "data")
    monkeypatch.setattr("intentlog.replay.searching.search", lambda *found, **wanted: object().surprise)  # type: ignore[attr-defined]
    done = call("search", "o-1")
    assert (3, True) == (done.exit_code, "unexpected AttributeError" in done.stderr), done.output
    edited(whole, "events", "data", "5")
    done = call("search", "o-1")
    assert (3, True) == (done.exit_code, f"table events, {STREAM} version {VERSION} at position" in done.stderr), done.output


@pytest.mark.parametrize(("column", "value"), [("event_id", "'gone'"), ("type", "x'00'"), ("event_id", "5")])
def test_an_input_that_is_not_found_may_have_stood_in_an_edited_row(whole, column, value):
    edited(whole, "events", column, value, version=0)
    done = call("trace", "order-o-1")
    assert 3 == done.exit_code
    assert (
        f"has no input 'order-o-1'. It may have stood in a row that is not as it was: eventlog.db was edited by hand: table events, {STREAM} version 0"
        in done.stderr
    )
