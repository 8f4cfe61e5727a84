"""A hand was at a column, in a log or in a bundle: every command answers, or says what is wrong with which row; none is surprised."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import zipfile
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group
from intentlog.replay.bundles.layout import MANIFEST
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

app = app_of(paying)
"""What the commands load by name."""
VERSION = 3
COLUMNS = ("position", "version", "event_id", "type", "schema", "data", "recorded_at", "correlation", "causation")
ODD: tuple[tuple[str, Any], ...] = (
    *(("event_id", odd) for odd in (5, "text")),
    *(("type", odd) for odd in (5, b"bytes", "")),
    *(("schema", odd) for odd in ("text", 1.5, -1)),
    *(("data", odd) for odd in (5, None, float("nan"))),
    *(("recorded_at", odd) for odd in ("text", None, -(2**62))),
    *(("correlation", odd) for odd in (5, b"short")),
    ("causation", "text"),
)
NOT_OF_A_BUNDLE = ("stats", "intents", "tail", "streams")
COMMANDS = (
    ("show", STREAM),
    ("raw", STREAM),
    ("state", STREAM),
    ("diff", STREAM, "0", "9"),
    ("why", STREAM, "refunded_cents"),
    ("trace", f"{STREAM}@9"),
    ("bisect", STREAM, "st.refunded_cents > 0"),
    ("replay", STREAM),
    ("verify",),
    ("search", "o-1"),
    ("fork", STREAM, "--at", "2"),
    ("preflight",),
    ("streams",),
    ("stats",),
    ("intents", "list"),
    ("tail",),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    world = World(url=f"sqlite:///{folder}/eventlog.db?synchronous=off")
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    world.log.close()
    with chdir(folder):
        assert 0 == CliRunner().invoke(group, ("bundle", STREAM, "-o", "case.bundle"), env={"EVENTLOG_APP": f"{__name__}:app"}).exit_code
    return folder


def in_a_log(made: Path, folder: Path, column: str, odd: Any) -> tuple[str, ...]:
    shutil.copy(made / "eventlog.db", folder / "eventlog.db")
    with closing(sqlite3.connect(folder / "eventlog.db")) as hand, hand:
        hand.execute(f"UPDATE events SET {column} = ? WHERE version = ?", (odd, VERSION))
    return ()


def in_a_bundle(made: Path, folder: Path, column: str, odd: Any) -> tuple[str, ...]:
    with zipfile.ZipFile(made / "case.bundle") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    rows = msgspec.msgpack.decode(members["streams/0"])
    rows[VERSION][COLUMNS.index(column)] = odd
    members["streams/0"] = msgspec.msgpack.encode(rows)
    manifest = json.loads(members[MANIFEST])
    manifest["streams"][0]["member"] |= {"size": len(members["streams/0"]), "sha256": hashlib.sha256(members["streams/0"]).hexdigest()}
    members[MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(folder / "odd.bundle", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = hashlib.sha256(members[MANIFEST]).hexdigest().encode()
    return ("--log", "odd.bundle")


TYPED = "go 9\nst\nrun\nwhy refunded_cents\nback until st.refunded_cents == 0\ngo 3\nev\nraw\nshow\nstep\ncause\ndiff 0 9\nsearch o-1\n"
"""In the shell."""


#: What the table itself lets nobody write: SQLite has NaN for NULL.
REFUSED = frozenset({"None", "nan"})


@pytest.mark.parametrize(
    ("changed", "column", "odd"),
    [(changed, column, odd) for changed in (in_a_log, in_a_bundle) for column, odd in ODD if changed is in_a_bundle or repr(odd) not in REFUSED],
)
def test_no_command_is_surprised_by_an_odd_column(made, tmp_path, changed, column, odd):
    where = changed(made, tmp_path, column, odd)
    surprised = []
    for command in COMMANDS if not where else [each for each in COMMANDS if each[0] not in NOT_OF_A_BUNDLE]:
        with chdir(tmp_path):
            done = CliRunner().invoke(group, (*command, *where), env={"EVENTLOG_APP": f"{__name__}:app"}, prog_name="eventlog")
        if done.exit_code not in (0, 1, 3) or "unexpected" in done.output or "Traceback" in done.output:
            surprised.append(f"{' '.join(command)} → {done.exit_code}: {done.output[-300:]}")
    with chdir(tmp_path):
        done = CliRunner().invoke(group, ("shell", STREAM, *where), input=TYPED, env={"EVENTLOG_APP": f"{__name__}:app"}, prog_name="eventlog")
    surprised += [line for line in done.output.splitlines() if "unexpected" in line or "Traceback" in line or "TypeError" in line]
    assert [] == surprised
