"""The demo tells the truth, and notices when it would not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intentlog.effector.demo.servers import Ledger
from intentlog.effector.demo.story import NotSo, Story
from tests.cli.conftest import call, child


def test_the_demo_tells_its_story_and_every_claim_holds():
    done = child("demo", NO_COLOR="1")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert "All of it held" in done.stdout
    assert 10 <= done.stdout.count("✓")
    (receipt,) = set(re.findall(r"\bre_\d+\b", done.stdout))
    assert "re_981" == receipt


def test_a_claim_that_does_not_hold_ends_the_demo(tmp_path):
    story = Story(tmp_path, "http://127.0.0.1:9", Ledger())
    with pytest.raises(NotSo, match="this should hold and does not: the moon is green"):
        story._holds("the moon is green", False)
    with pytest.raises(NotSo, match="exit code 2, expected 0"):
        story._command("nope")


def test_the_demo_may_leave_its_folder_to_look_around_in(tmp_path):
    done = child("demo", "--keep", str(tmp_path / "here"))
    assert (0, True, True) == (done.returncode, (tmp_path / "here" / "eventlog.db").exists(), (tmp_path / "here" / "refunds.py").exists())


@pytest.mark.parametrize("theirs", ["refunds.py", "eventlog.db", "eventlog.db-wal"])
def test_the_demo_writes_over_nothing(tmp_path, theirs):
    (tmp_path / theirs).write_text("mine")
    done = call("demo", "--keep", str(tmp_path))
    assert (2, "", [tmp_path / theirs], "mine") == (done.exit_code, done.stdout, list(tmp_path.iterdir()), (tmp_path / theirs).read_text())
    assert f"holds {theirs} already" in done.stderr and "new or empty" in done.stderr


@pytest.mark.parametrize("folder", ["file/below", "/proc/nowhere/demo", "/proc"])
def test_a_folder_that_the_demo_cannot_make_is_told_with_the_way_out(tmp_path, folder):
    (tmp_path / "file").write_text("")
    done = call("demo", "--keep", str(tmp_path / folder))
    assert (2, "", True) == (done.exit_code, done.stdout, "leave --keep out" in done.stderr)


def test_the_example_is_the_very_file_the_demo_runs():
    root = Path(__file__).resolve().parents[2]
    assert (root / "examples/refund/refunds.py").resolve() == root / "effector/demo/refunds.py"


def test_the_bank_pays_once_for_a_key():
    ledger = Ledger()
    assert [{"receipt": "re_981"}, {"receipt": "re_981"}, {"receipt": "re_982"}] == [ledger.pay("a"), ledger.pay("a"), ledger.pay("b")]
