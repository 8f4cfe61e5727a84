"""The four commands as a user meets them: what they print, and what they exit with."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.acceptance import forking
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

ROOT = Path(__file__).resolve().parents[2]
REFUNDS = """
from intentlog.agents import Complete
from tests.replay.world import app_of, lookup, paying, refund, unanswered

app = app_of(paying, unanswered())

async def asking_otherwise(ctx, asked: "RefundAsked"):
    ctx.emit(asked)
    await ctx.run_tool(lookup, order_id=asked.order_id)
    await ctx.call_model(f"Repay {asked.cents}?")

from tests.replay.world import RefundAsked
changed = app_of(asking_otherwise)
"""
BEGUN = """
from tests.replay.world import Account

class Begun(Account):
    orders: frozenset[str] = frozenset({"o-0"})

app = app_of(paying, unanswered(), state=Begun)
"""
AGAINST = "; in all of them with --against PATH|REV"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    world, app = World(f"sqlite:///{folder}/eventlog.db"), app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.story(app, RefundAsked("o-3", 1), key="acct-43")
    world.log.close()
    (folder / "refunds.py").write_text(REFUNDS)
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(recorded, tmp_path / "copy")


def eventlog(folder: Path, *arguments: str) -> tuple[int, str, str]:
    done = forking.eventlog(arguments, {**os.environ, "PYTHONPATH": str(ROOT)}, folder)
    return done.returncode, done.stdout, done.stderr


def test_show_tells_the_story_without_an_app(folder):
    code, out, _ = eventlog(folder, "show", STREAM)
    lines = out.splitlines()
    assert (0, f"{STREAM}  2025-11-29", 23) == (code, lines[0], len(lines))
    assert "   3  refund.asked      cents=4200  order_id=o-1" in lines[4]


def test_show_takes_a_part_and_names_users_classes(folder):
    code, out, _ = eventlog(folder, "show", STREAM, "--from", "2", "--to", "9", "-n", "2", "--app", "refunds:app")
    lines = out.splitlines()
    assert (0, 3, True) == (code, len(lines), lines[1].startswith("  09:14:01.000  8  IntentSettled "))
    assert "                9  RefundPaid        receipt=re_o-1  cents=4200" == lines[2]


def test_show_as_json_is_a_line_an_event(folder):
    code, out, _ = eventlog(folder, "show", STREAM, "--json", "-n", "3")
    assert (0, [19, 20, 21]) == (code, [json.loads(line)["version"] for line in out.splitlines()])


def test_a_stream_that_does_not_exist_is_answered_with_close_ones(folder):
    code, _, err = eventlog(folder, "show", "accounts-acct-44")
    assert (3, "eventlog: sqlite:///eventlog.db has no stream 'accounts-acct-44'. There is accounts-acct-43, accounts-acct-42\n") == (code, err)


def test_state_prints_the_fold_at_any_version(folder):
    code, out, _ = eventlog(folder, "state", STREAM, "--at", "10", "--app", "refunds:app")
    assert (0, f"{STREAM} at version 10", True) == (code, out.splitlines()[0], "refunded_cents  4200" in out)
    code, out, _ = eventlog(folder, "state", STREAM, "--app", "refunds:app", "--json")
    assert (0, 4207, 21) == (code, json.loads(out)["state"]["refunded_cents"], json.loads(out)["version"])


def test_state_beyond_the_head_names_the_head(folder):
    code, _, err = eventlog(folder, "state", STREAM, "--at", "99", "--app", "refunds:app")
    assert (3, f"eventlog: {STREAM} has no version 99: its versions are 0 to 21\n") == (code, err)


def test_replay_of_everything_is_the_same_with_a_provider_that_is_down(folder):
    before = (folder / "eventlog.db").read_bytes()
    code, out, err = eventlog(folder, "replay", "--all", "--app", "refunds:app")
    assert (0, f"2 streams: 2 same  (33 events, 6 turns, 6 hits, no call)\nstate compared in 0 of 2 streams{AGAINST}\n", "") == (code, out, err)
    assert before == (folder / "eventlog.db").read_bytes()


def test_the_summary_says_in_how_many_streams_the_state_was_compared(folder):
    assert 0 == eventlog(folder, "bundle", STREAM, "-o", "live.bundle", "--app", "refunds:app")[0]
    assert 0 == eventlog(folder, "bundle", STREAM, "-o", "bare.bundle")[0]
    for words, line, said in (
        (("--bundle", "live.bundle"), "state compared in 1 of 1 stream", "compared"),
        (("--bundle", "bare.bundle"), f"state compared in 0 of 1 stream{AGAINST}", "not compared"),
        (("--bundle", "bare.bundle", "--against", "."), "state compared in 1 of 1 stream", "compared"),
    ):
        code, out, _ = eventlog(folder, "replay", *words, "--app", "refunds:app")
        assert (0, line) == (code, out.splitlines()[-1])
        assert [said] == [json.loads(each)["state"] for each in eventlog(folder, "replay", *words, "--app", "refunds:app", "--json")[1].splitlines()]


def test_a_changed_default_is_found_in_other_code_over_a_bundle(folder):
    assert 0 == eventlog(folder, "bundle", STREAM, "-o", "live.bundle", "--app", "refunds:app")[0]
    (folder / "changed").mkdir()
    (folder / "changed" / "refunds.py").write_text(f"{REFUNDS}\n{BEGUN}")
    code, out, _ = eventlog(folder, "replay", "--bundle", "live.bundle", "--code", "changed", "--app", "refunds:app", "--json")
    found = json.loads(out)
    assert (1, "state", 21, True) == (
        code,
        found["divergence"]["kind"],
        found["divergence"]["version"],
        found["divergence"]["field"].startswith("state.orders"),
    )


def test_replay_shows_the_first_difference_with_both_sides(folder):
    code, out, _ = eventlog(folder, "replay", STREAM, "--app", "refunds:changed")
    assert 1 == code
    assert (
        f"""{STREAM}  diverged at version 2 (model_call.cached)
  activation 0, turn 0, step 0 (model call)
  messages[0].content (character 2)
    recorded  'Refund 4200 for o-1, 3 items, 0 before?'
    decided   'Repay 4200?'
                 ^^^^^^^^
  The code asks for something else at this step than it did when this was recorded.
  The history around it: eventlog show {STREAM} --from 0 --to 7
1 stream: 0 same 1 diverged  (6 events, 0 turns, 0 hits, no call)
"""
        == out
    )


def test_replay_as_json_is_a_line_a_stream(folder):
    code, out, _ = eventlog(folder, "replay", "--category", "accounts", "--app", "refunds:changed", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert (1, ["diverged", "diverged"]) == (code, [each["verdict"] for each in found])
    assert ("drift", 2, "messages[0].content (character 2)") == tuple(found[0]["divergence"][name] for name in ("kind", "version", "field"))


def test_replay_of_a_history_that_cannot_be_read_exits_with_3(folder):
    connection = sqlite3.connect(folder / "eventlog.db")
    with connection:
        connection.execute("UPDATE events SET schema = 9 WHERE version = 3")
    connection.close()
    code, out, _ = eventlog(folder, "replay", "--all", "--app", "refunds:app")
    assert (3, True) == (code, "refund.asked was written under schema version 9" in out)


def test_replay_wants_to_know_what(folder):
    code, _, err = eventlog(folder, "replay", "--app", "refunds:app")
    assert (2, True) == (code, "Name what to replay: streams, or --category AGENT, or --since WHEN, or --bundle FILE, or --all." in err)


def test_verify_finds_the_log_sound_and_says_what_it_could_not_check(folder):
    assert (0, "2 streams, 33 events: sound\n", "") == eventlog(folder, "verify", "--app", "refunds:app")
    code, out, err = eventlog(folder, "verify")
    assert (0, "2 streams, 33 events: sound\n", True) == (code, out, err.startswith("6 events of types that only an app knows"))


def test_verify_names_what_a_hand_changed(folder):
    connection = sqlite3.connect(folder / "eventlog.db")
    with connection:
        connection.execute("DELETE FROM events WHERE position = 5")
    connection.close()
    code, out, _ = eventlog(folder, "verify", STREAM, "--app", "refunds:app")
    assert 1 == code
    assert out.startswith(f"{STREAM} version 5: versions have a hole\n  version 5 follows 3: 4 is missing\n")
    assert out.endswith("1 stream, 21 events: 1 with faults\n")


def test_looking_back_never_makes_a_log(tmp_path):
    for command in (["show", STREAM], ["verify"]):
        code, _, err = eventlog(tmp_path, *command)
        assert (3, True) == (code, "eventlog init" in err)
    assert [] == list(tmp_path.iterdir())
