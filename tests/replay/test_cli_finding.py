"""``eventlog diff``, ``why`` and ``bisect`` as a user meets them: what they print, what they exit with, and what they leave alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group
from tests.acceptance import forking
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying, unanswered

ROOT = Path(__file__).resolve().parents[2]
app = app_of(paying, unanswered())
"""What the commands load by name."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recorded")
    world = World(f"sqlite:///{made}/eventlog.db")
    world.story(app_of(paying), RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.log.close()
    return made


def eventlog(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command in this process, as long as it needs no other."""
    with chdir(folder):
        done = CliRunner().invoke(group, arguments, env={"EVENTLOG_APP": f"{__name__}:app"}, prog_name="eventlog")
    return done.exit_code, done.stdout, done.stderr


def test_diff_shows_what_changed_and_exits_with_1(folder):
    code, out, err = eventlog(folder, "diff", STREAM, "10", "now")
    assert (1, "") == (code, err)
    assert [
        f"{STREAM} from version 10 to 21: 5 changes",
        "~ refunded_cents    4200 → 4207",
        "+ orders['o-2']",
        "~ run.inputs        1 → 2",
        "~ run.completed     1 → 2",
        "~ run.spent.tokens  243 → 486",
    ] == out.splitlines()


def test_diff_of_a_part_and_the_other_way_round(folder):
    assert (1, f"{STREAM} from version 21 to 10: 1 change\n~ refunded_cents  4207 → 4200\n", "") == eventlog(
        folder, "diff", STREAM, "now", "10", "refunded_cents"
    )
    assert (0, f"{STREAM} from version 10 to 10: no difference\n", "") == eventlog(folder, "diff", STREAM, "10", "10")


def test_diff_as_json_is_one_object(folder):
    code, out, _ = eventlog(folder, "diff", STREAM, "5", "6", "--json")
    found = json.loads(out)
    assert (1, STREAM, 5, 6) == (code, found["stream"], found["a"], found["b"])
    assert {"added"} == {each["kind"] for each in found["changes"] if each["path"].endswith(".waits")}


def test_why_goes_back_to_the_prompt_and_the_input(folder):
    code, out, err = eventlog(folder, "why", STREAM, "refunded_cents")
    lines = out.splitlines()
    assert (0, "", f"refunded_cents is 4207  ({STREAM} at version 21)") == (code, err, lines[0])
    assert ["20", "19", "18", "16", "13", "12", "11", "9"] == [line.split()[1] for line in lines if line.startswith("  09:14")]
    assert "Refund 7 for o-2, 3 items, 4200 before?" in out
    assert "4200 → 4207" in lines[1]


def test_why_as_json_has_the_whole_request(folder):
    code, out, _ = eventlog(folder, "why", STREAM, "orders['o-1']", "--json")
    found = json.loads(out)
    assert (0, "o-1", [3], "changed") == (code, found["value"], [each["version"] for each in found["changes"]], found["without"])
    asked = next(each for each in found["causes"] if each["type"] == "model_call.cached")
    assert "Refund 4200 for o-1, 3 items, 0 before?" == asked["fields"]["request"]["messages"][0]["content"]
    assert {"order_id": "o-1", "cents": 4200} == found["causes"][-1]["fields"]["payload"]


def test_bisect_finds_the_first_event_and_the_smallest_inputs(folder):
    code, out, _ = eventlog(folder, "bisect", STREAM, "st.refunded_cents > 5", "--minimize")
    lines = out.splitlines()
    assert (1, f"{STREAM}: st.refunded_cents > 5 holds after version 9") == (code, lines[0])
    assert ["  It changes nowhere else.", "1 input of 1 shows it, after version 9", "  version 0  in-1"] == lines[2:5]
    assert "  Run again with these inputs only, the code decides the same." == lines[5]


def test_bisect_says_when_a_condition_is_not_monotone_and_when_there_is_nothing(folder):
    code, out, _ = eventlog(folder, "bisect", STREAM, "run.line", "--json")
    found = json.loads(out)
    assert (1, 0, False, [0, 10, 11, 21]) == (code, found["version"], found["monotone"], found["changes"])
    assert eventlog(folder, "bisect", STREAM, "version < 0")[1].startswith(f"{STREAM}: version < 0 stops holding after version 0\n")
    assert (0, f"{STREAM}: st.refunded_cents > 9999 does not hold at any version\n", "") == eventlog(folder, "bisect", STREAM, "st.refunded_cents > 9999")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("diff", STREAM, "soon", "now"), 2, "'soon' is no place in a stream"),
        (("diff", STREAM, "0", "99"), 3, "has no version 99: its versions are 0 to 21"),
        (("diff", STREAM, "0", "1", "refund_cents"), 3, "nothing stands at refund_cents; state has refunded_cents"),
        (("why", STREAM, "a..b"), 2, "'a..b' is no path: expected a name at character 2"),
        (("why", STREAM, "refund_cents"), 3, "nothing stands at refund_cents; state has refunded_cents"),
        (("why", "accounts-acct-43", "orders"), 3, "There is accounts-acct-42"),
        (("bisect", STREAM), 2, "Say what to look for"),
        (("bisect", STREAM, "__import__('os').system('true')"), 2, "it may not be called"),
        (("bisect", STREAM, "st.cents > 1"), 3, "Account has no 'cents'; it has: refunded_cents, orders"),
        (("bisect", STREAM, "--over", "code", "main"), 2, "is no range of revisions"),
        (("bisect", STREAM, "--over", "code", "a..b", "--minimize"), 2, "--over code goes with EXPR"),
        (("bisect", STREAM, "version > 1", "--log", "sqlite:///none.db"), 3, "There is no event log at none.db"),
    ],
)
def test_what_cannot_be_is_told_with_the_way_out(folder, arguments, code, said):
    found, out, err = eventlog(folder, *arguments)
    assert (code, "", True) == (found, out, said in err), err


def test_nothing_is_written_to_the_log(folder):
    before = (folder / "eventlog.db").read_bytes()
    for arguments in (("diff", STREAM, "0", "now"), ("why", STREAM, "orders"), ("bisect", STREAM, "run.line", "--minimize")):
        eventlog(folder, *arguments)
    assert before == (folder / "eventlog.db").read_bytes()


@pytest.fixture
def repository(folder: Path, tmp_path: Path) -> Path:
    """Four commits of an app: the second asks the model something else, the third cannot be loaded, the fourth counts double."""
    shutil.copy(folder / "eventlog.db", tmp_path)
    (tmp_path / ".gitignore").write_text("*.db\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    world = (ROOT / "tests" / "replay" / "world.py").read_text()
    louder = world.replace(" before?", " before!")
    double = louder.replace("self.refunded_cents + e.cents", "self.refunded_cents + 2 * e.cents")
    for subject, text in (("first", world), ("louder", louder), ("broken", louder + "\n("), ("double", double)):
        (tmp_path / "refunds.py").write_text(text + "\n\napp = app_of(paying, unanswered())\n")
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", subject], cwd=tmp_path, check=True)
    return tmp_path


def of_its_own(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command as a process of its own, which others come from."""
    done = forking.eventlog(arguments, {**os.environ, "PYTHONPATH": str(ROOT), "EVENTLOG_APP": "refunds:app"}, folder)
    return done.returncode, done.stdout, done.stderr


def everything_in(repository: Path) -> list[Path]:
    return sorted(path for path in repository.rglob("*") if not path.name.startswith("eventlog.db"))


def test_bisect_over_code_finds_the_commit_and_leaves_the_checkout_alone(repository):
    (repository / "refunds.py").write_text("not even Python (")
    before = everything_in(repository)
    code, out, err = of_its_own(repository, "bisect", STREAM, "--over", "code", "HEAD~3..HEAD", "--json")
    found = json.loads(out)
    assert (1, "", "louder", "diverged", "first") == (code, err, found["first"]["subject"], found["first"]["verdict"], found["last"]["subject"])
    assert "messages[0].content" in found["first"]["detail"]
    code, out, _ = of_its_own(repository, "bisect", STREAM, "st.refunded_cents > 5000", "--over", "code", "HEAD~3..")
    assert (1, "It is ", " or one of 1 commit before it that cannot be run.") == (code, out.splitlines()[-1][:6], out.splitlines()[-1].partition(",")[2])
    assert any(line.startswith("→") and line.endswith("double") for line in out.splitlines())
    assert before == everything_in(repository)
    assert "not even Python (" == (repository / "refunds.py").read_text()
