"""``fork`` and ``merge`` as a user meets them: what they print, what they ask, what they exit with."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance import forking
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

ROOT = Path(__file__).resolve().parents[2]
REFUNDS = """
from tests.replay.world import RefundAsked, RefundPaid, app_of, lookup, paying, refund, unanswered
app = app_of(paying, unanswered())
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    world, app = World(f"sqlite:///{folder}/eventlog.db"), app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.send(app, RefundAsked("o-3", 1), key="acct-43")
    world.log.close()
    (folder / "refunds.py").write_text(REFUNDS)
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path / "copy")


def installed(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The console script itself, with an interpreter of its own."""
    command = [str(Path(sys.executable).parent / "eventlog"), *arguments, "--app", "refunds:app"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    return done.returncode, done.stdout, done.stderr


def eventlog(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = forking.eventlog([*arguments, "--app", "refunds:app"], {**os.environ, "PYTHONPATH": str(ROOT)}, folder)
    return done.returncode, done.stdout, done.stderr


def test_a_fork_shows_what_is_different_and_is_written_beside(folder):
    before = (folder / "eventlog.db").read_bytes()
    code, out, err = installed(folder, "fork", STREAM, "--at", "10", "--edit", "8", "value=re_x", "--by", "ann")
    lines = out.splitlines()
    assert (1, "") == (code, err)
    assert f'{STREAM} forked at version 10: edit 8 value="re_x"' == lines[0]
    assert ["-    9  RefundPaid", "+    9  RefundPaid"] == [line.strip()[:18] for line in lines if "   9  RefundPaid" in line]
    assert "it ends here: nothing is left to do" in lines
    (bundle,) = folder.glob("fork-accounts-*-10.bundle")
    assert f"written to {bundle.name} as {STREAM}: nothing there is due, and effects are off" == lines[-1]
    assert before == (folder / "eventlog.db").read_bytes()
    code, out, _ = eventlog(folder, "replay", "--all", "--log", bundle.name)
    assert (0, True) == (code, "1 same" in out)


def test_without_a_difference_it_exits_with_0_and_a_dry_run_writes_nothing(folder):
    code, out, _ = eventlog(folder, "fork", STREAM, "--dry-run", "--json")
    tree = json.loads(out)
    assert (0, False, "done", None) == (code, tree["differs"], tree["stopped"], tree["written"])
    assert [] == list(folder.glob("*.bundle"))


def test_what_cannot_be_forked_is_told_in_one_line(folder):
    for arguments, exit_code, said in (
        (("--at", "4"), 3, "inside of one append"),
        (("--edit", "3", "cents=1"), 3, "decided by the agent's code"),
        (("--edit", "0", "nothing=1"), 3, "there is no 'nothing'"),
        (("--live", "--dry-run"), 2, "give one of them"),
        (("--live", "--to", "x.bundle", "--yes"), 2, "nothing can go on"),
    ):
        code, _, err = eventlog(folder, "fork", STREAM, *arguments)
        assert (exit_code, True, 1) == (code, said in err, len(err.splitlines())), err


def test_live_asks_first_and_merging_says_first_what_it_will_do(folder):
    stream = "accounts-acct-43"
    code, out, err = eventlog(folder, "fork", stream, "--live")
    assert (3, True) == (code, "Let this fork go on for real?" in err)
    assert "written" not in out
    code, out, _ = eventlog(folder, "fork", stream, "--live", "--yes")
    assert (0, True) == (code, f"as {stream}~fork1: workers and effectors go on with it from now on" in out)
    code, out, err = installed(folder, "merge", f"{stream}~fork1", "--dry-run")
    assert (0, "", ["  The source has all of it: nothing is brought.", "  The fork goes on no more."]) == (code, err, out.splitlines()[1:])
    code, out, err = eventlog(folder, "merge", f"{stream}~fork1")
    assert (3, True) == (code, "Do this?" in err)
    code, out, _ = eventlog(folder, "merge", f"{stream}~fork1", "--yes", "--json")
    assert (0, 0, []) == (code, json.loads(out)["written"], json.loads(out)["conflicts"])
    code, _, err = eventlog(folder, "merge", f"{stream}~fork1", "--yes")
    assert (3, True) == (code, "was merged" in err)
    code, _, err = eventlog(folder, "merge", stream)
    assert (3, True) == (code, "is no fork" in err)


@pytest.mark.parametrize("with_app", [True, False])
def test_the_record_beside_a_fork_is_the_runtimes_own_and_is_read_and_checked(folder, with_app):
    fork, place = "accounts-acct-43~fork1", "accounts.fork-acct-43~fork1"
    command = eventlog if with_app else without_app
    eventlog(folder, "fork", "accounts-acct-43", "--live", "--yes")
    eventlog(folder, "merge", fork, "--yes")
    for version, name in enumerate(("ForkBegun", "ForkMerged")):
        code, out, err = command(folder, "raw", place, str(version))
        assert (0, "", True) == (code, err, f"begun.{name} (schema 1)" in out)
        assert "no class" not in out
    code, out, err = command(folder, "verify", place)
    assert (0, "", "1 stream, 2 events: sound\n") == (code, err, out)
    log = sqlite3.connect(folder / "eventlog.db")
    with log:
        log.execute("UPDATE events SET data = x'81' WHERE type = 'fork.merged'")
    log.close()
    code, out, _ = command(folder, "verify", place)
    assert (1, True) == (code, "1 with faults" in out)
    code, out, _ = command(folder, "raw", place)
    assert 1 == code


def without_app(folder: Path, *arguments: str) -> tuple[int, str, str]:
    command = [str(Path(sys.executable).parent / "eventlog"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_bundled_fork_is_merged_into_the_log_it_came_from(folder):
    (folder / "more.json").write_text('{"type": "refund.asked", "fields": {"order_id": "o-9", "cents": 9}, "id": "in-9"}')
    code, _, _ = eventlog(folder, "fork", STREAM, "--insert", "more.json", "--to", "fork.bundle")
    assert 1 == code
    code, out, _ = eventlog(folder, "merge", STREAM, "--log", "fork.bundle", "--yes")
    assert (0, f"done: 1 events brought to {STREAM}") == (code, out.splitlines()[-1])
    code, out, _ = eventlog(folder, "show", STREAM, "-n", "1")
    assert (0, True) == (code, "o-9" in out)
