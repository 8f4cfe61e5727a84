"""A hand was at a column, in a log or in a bundle: every command answers, or says what is wrong with which row; none is surprised."""

from __future__ import annotations

import shutil
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from intentlog.eventlog.cli import group
from intentlog.eventlog.events import StoredEvent
from tests.replay.edited_bundles import rewritten, with_cell
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying
from tests.stores import Sqlite

app = app_of(paying)
"""What the commands load by name."""
VERSION = 3
COLUMNS = [name for name in StoredEvent._fields if name != "stream"]
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
    assert 0 == eventlog(folder, "bundle", STREAM, "-o", "case.bundle").exit_code
    return folder


def eventlog(folder: Path, *words: str, typed: str = "") -> Result:
    with chdir(folder):
        return CliRunner().invoke(group, words, input=typed, env={"EVENTLOG_APP": f"{__name__}:app"}, prog_name="eventlog")


def in_a_log(made: Path, folder: Path, column: str, odd: Any) -> tuple[str, ...]:
    shutil.copy(made / "eventlog.db", folder / "eventlog.db")
    Sqlite().edit(f"sqlite:///{folder}/eventlog.db", f"UPDATE events SET {column} = ? WHERE version = ?", odd, VERSION)
    return ()


def in_a_bundle(made: Path, folder: Path, column: str, odd: Any) -> tuple[str, ...]:
    shutil.copy(made / "case.bundle", folder / "case.bundle")
    rewritten(folder / "case.bundle", with_cell(VERSION, COLUMNS.index(column), odd))
    return ("--log", "edited.bundle")


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
        done = eventlog(tmp_path, *command, *where)
        if done.exit_code not in (0, 1, 3) or "unexpected" in done.output or "Traceback" in done.output:
            surprised.append(f"{' '.join(command)} → {done.exit_code}: {done.output[-300:]}")
    done = eventlog(tmp_path, "shell", STREAM, *where, typed=TYPED)
    surprised += [line for line in done.output.splitlines() if "unexpected" in line or "Traceback" in line or "TypeError" in line]
    assert [] == surprised
