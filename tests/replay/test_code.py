"""A replay with other code: of a folder, of a revision, in several processes; the checkout stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group
from intentlog.replay.errors import CodeUnusable
from intentlog.replay.revisions import code_at
from tests.acceptance import forking

APP = """
from datetime import timedelta
from intentlog.agents import App, ModelResponse, agent, tool
from intentlog.eventlog import event
from greetings import GREETING

@event("letter.begun")
class Begun:
    to: str
    warmth: int = 3

class Agreeable:
    provider, model = "example", "agreeable"
    async def complete(self, request, *, idempotency_key):
        return ModelResponse("yes", self.model)

@tool(side_effect=True, idempotent=True)
async def push(text: str) -> str:
    return text

@agent("letters")
async def letters(ctx, to: str):
    answer = await ctx.call_model(f"{GREETING}, {to}?")
    ctx.emit(Begun(to))
    await ctx.perform(push, text=answer.text)
    await ctx.signal("go")
    return to

app = App(agents=[letters], models=Agreeable())
"""


def git(folder: Path, *words: str) -> str:
    identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *words], cwd=folder, env={**os.environ, **identity}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def eventlog(folder: Path, *words: str, apart: bool = False) -> tuple[int, str, str]:
    """The command in ``folder``; in this process, unless ``apart`` or when the app would be imported here. Then it is forked from one that is warm."""
    if apart or not {"--code", "-j"} & set(words):
        done = forking.eventlog(words, os.environ, folder)
        return done.returncode, done.stdout, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(group, list(words), prog_name="eventlog")
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose first revision wrote the log, and whose second greets otherwise."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "letters.py").write_text(APP)
    (folder / "greetings.py").write_text('GREETING = "Hello"\n')
    (folder / ".gitignore").write_text("*.db*\n__pycache__\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "hello")
    log = f"sqlite:///{folder}/eventlog.db"
    for command in (("init",), *(("send", "letters", f"k{n}", f'"k{n}"') for n in range(5))):
        assert 0 == CliRunner().invoke(group, [*command, "--log", log]).exit_code, command
    assert 0 == eventlog(folder, "run", "letters:app", "--until-idle")[0]
    (folder / "greetings.py").write_text('GREETING = "Good morning"\n')
    git(folder, "commit", "-q", "-a", "-m", "good morning")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "copy")


def test_the_code_of_a_revision_is_run_and_the_checkout_is_left_alone(folder):
    before = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}
    assert 1 == eventlog(folder, "replay", "--all", "--app", "letters:app", "-j", "2")[0]
    code, out, err = eventlog(folder, "replay", "--all", "--app", "letters:app", "--code", "HEAD~1")
    assert (0, "5 streams: 5 same  (40 events, 10 turns, 10 hits, no call)\n", "") == (code, out, err)
    after = {path: path.stat().st_mtime_ns for path in sorted(folder.rglob("*")) if path.is_file()}
    assert before == after
    assert "" == git(folder, "status", "--porcelain", "--untracked-files=no")


def test_the_code_of_a_revision_is_run_from_a_folder_within_it_and_nothing_is_said_to_come_from_elsewhere(folder):
    (folder / "service").mkdir()
    git(folder, "mv", "letters.py", "greetings.py", "service")
    git(folder, "commit", "-q", "-m", "a service")
    words = ("replay", "--all", "--app", "letters:app", "--code", "HEAD", "--log", f"sqlite:///{folder}/eventlog.db")
    assert (1, "") == (done := eventlog(folder / "service", *words))[::2], done


def test_what_a_revision_lacks_is_not_taken_from_the_folder_around(folder):
    git(folder, "rm", "-q", "--cached", "greetings.py")
    git(folder, "commit", "-q", "-m", "forgotten")
    code, out, err = eventlog(folder, "replay", "--all", "--app", "letters:app", "--code", "HEAD")
    assert (3, "", True) == (code, out, "letters imports 'greetings', which is not installed" in err), err


def test_what_the_path_takes_from_the_checkout_all_the_same_is_named(folder):
    git(folder, "rm", "-q", "--cached", "greetings.py")
    git(folder, "commit", "-q", "-m", "forgotten")
    with pytest.MonkeyPatch.context() as patch:
        (folder / "lib").mkdir()
        shutil.move(folder / "greetings.py", folder / "lib")
        patch.setenv("PYTHONPATH", str(folder / "lib"))
        code, out, err = eventlog(folder, "replay", "--all", "--app", "letters:app", "--code", "HEAD")
        over = eventlog(folder, "bisect", "letters-k0", "--over", "code", "HEAD~2..", "--app", "letters:app", apart=True)
    beside = "from the checkout itself: greetings. Install the app elsewhere, or give --code a folder.\n"
    assert (1, f"eventlog: not of HEAD but {beside}") == (code, err), out
    assert (1, f"eventlog: not of each commit but {beside.partition(',')[0]}.\n") == over[::2], over


def test_the_code_of_a_folder_comes_before_what_is_found_from_here(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(folder / "letters.py", other)
    (other / "greetings.py").write_text('GREETING = "Hello"\n')
    code, out, _ = eventlog(folder, "replay", "--all", "--app", "letters:app", "--code", str(other))
    assert (0, True) == (code, out.startswith("5 streams: 5 same"))
    assert ["greetings.py", "letters.py"] == sorted(path.name for path in other.iterdir())


def test_several_processes_answer_in_the_order_of_one(folder):
    one = eventlog(folder, "replay", "--all", "--app", "letters:app", "--json", apart=True)
    three = eventlog(folder, "replay", "--all", "--app", "letters:app", "--json", "-j", "3")
    assert (1, 5) == (one[0], len(one[1].splitlines()))
    assert one == three


def test_a_process_that_dies_costs_only_its_own_stream(folder):
    text = (folder / "letters.py").read_text()
    (folder / "letters.py").write_text(text.replace("    answer =", '    if to == "k2":\n        import os; os._exit(7)\n    answer ='))
    (folder / "greetings.py").write_text('GREETING = "Hello"\n')
    code, out, _ = eventlog(folder, "replay", "--all", "--app", "letters:app", "--json", "-j", "2")
    found = {each["stream"]: each for each in map(json.loads, out.splitlines())}
    assert (3, ["same", "same", "cannot", "same", "same"]) == (code, [found[f"letters-k{n}"]["verdict"] for n in range(5)])
    assert "exit code 7" in found["letters-k2"]["reason"]


def test_a_field_taken_out_of_an_event_is_told_with_its_version_and_name(folder):
    (folder / "letters.py").write_text(APP.replace("    warmth: int = 3\n", ""))
    (folder / "greetings.py").write_text('GREETING = "Hello"\n')
    code, out, _ = eventlog(folder, "replay", "letters-k1", "--app", "letters:app", "--code", ".", "--json")
    found = json.loads(out)["divergence"]
    assert (1, 2, "letter.begun", "warmth", "3", "(absent)") == (code, *(found[name] for name in ("version", "event", "field", "recorded", "decided")))


def test_a_default_that_was_changed_is_a_field_of_the_event_that_differs(folder):
    (folder / "letters.py").write_text(APP.replace("warmth: int = 3", "warmth: int = 4"))
    (folder / "greetings.py").write_text('GREETING = "Hello"\n')
    code, out, _ = eventlog(folder, "replay", "letters-k1", "--app", "letters:app", "--code", ".", "--json")
    found = json.loads(out)["divergence"]
    assert (1, 2, "letter.begun", "warmth", "3", "4") == (code, *(found[name] for name in ("version", "event", "field", "recorded", "decided")))


STATEFUL = APP.replace("import App,", "import Aggregate, App, applies,").replace(
    '@agent("letters")',
    """
class Desk(Aggregate):
    begun: tuple[str, ...] = ()

    @applies(Begun)
    def _(self, e: Begun) -> "Desk":
        return self.evolve(begun=(*self.begun, e.to))

@agent("letters", state=Desk)""",
)


def test_states_are_held_against_those_of_the_code_before(folder):
    """Nobody looks at the state before it decides, and no worker kept it."""
    (folder / "letters.py").write_text(STATEFUL)
    (folder / "greetings.py").write_text('GREETING = "Hello"\n')
    shutil.copytree(folder, folder / "after", ignore=shutil.ignore_patterns(".git", "*.db*"))
    (folder / "after" / "letters.py").write_text(STATEFUL.replace("e.to))", 'e.to or "nobody", "twice"))'))
    command = ("replay", "letters-k1", "--app", "letters:app", "--code", "after", "--json")
    assert 0 == eventlog(folder, *command)[0]
    code, out, _ = eventlog(folder, *command, "--against", ".")
    found = json.loads(out)["divergence"]
    assert (1, "state", 2, "letter.begun", "state.begun[1]") == (code, *(found[name] for name in ("kind", "version", "event", "field")))
    (folder / "known.txt").write_text("* * state.begun[1]\n")
    assert 0 == eventlog(folder, *command, "--against", ".", "--allow", "known.txt")[0]
    assert 0 == eventlog(folder, *command, "--against", "after")[0]


def test_what_an_app_prints_does_not_get_into_the_answers(folder):
    (folder / "greetings.py").write_text('import os\nprint("{}")\nos.write(1, b"noise")\nGREETING = "Hello"\n')
    code, out, err = eventlog(folder, "replay", "letters-k1", "--app", "letters:app", "-j", "2", apart=True)
    assert (0, True, True) == (code, out.startswith("letters-k1  same"), "noise" in err)


def test_a_preflight_names_the_runs_that_a_revision_would_break(folder):
    code, out, _ = eventlog(folder, "preflight", "--app", "letters:app", "--code", "main")
    assert (1, 5, "5 runs under way: 0 safe 5 needs patch") == (code, out.count("NEEDS PATCH"), out.splitlines()[-1])
    code, out, _ = eventlog(folder, "preflight", "--app", "letters:app", "--code", "HEAD~1", "--json")
    assert (0, ["safe"] * 5) == (code, [json.loads(line)["outlook"] for line in out.splitlines()])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--code", "no-such-revision"), 3, "is neither a folder here nor a revision"),
        (("--code", "--upload-pack=x"), 3, "is neither a folder here nor a revision"),
        (("--code", "letters.py"), 3, "that is a file"),
        (("--code", "HEAD", "--app", "nothing:app"), 2, "there is no module 'nothing'"),
        (
            (
                "--code",
                "..",
            ),
            3,
            "not in the code to replay with",
        ),
    ],
)
def test_code_that_cannot_be_had_is_told_with_the_way_out(folder, words, code, told):
    app = () if "--app" in words else ("--app", "letters:app")
    done = eventlog(folder, "replay", "--all", *app, *words)
    assert (code, "", True) == (done[0], done[1], told in done[2]), done[2]
    assert "Traceback" not in done[2]


def test_a_revision_without_the_current_folder_is_refused(folder):
    (folder / "new").mkdir()
    with pytest.raises(CodeUnusable, match="has no folder new"), code_at("HEAD", folder / "new"):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_revision_that_was_written_out_is_gone_when_a_signal_ends_the_process(folder, number):
    program = (
        "import signal\nfrom intentlog.replay.revisions import code_at\n"
        "with code_at('HEAD') as one, code_at('HEAD~1') as other:\n    print(one.paths[0], other.paths[0], flush=True)\n    signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        places = [Path(each) for each in process.stdout.readline().split()]
        assert [True, True] == [each.is_dir() for each in places]
        process.send_signal(number)
        assert -number == process.wait(20)
    assert [False, False] == [each.exists() for each in places]


def test_the_streams_since_a_place_are_replayed(folder):
    for since, count in (("1h", 5), ("@1000000", 0)):
        code, out, _ = eventlog(folder, "replay", "--since", since, "--app", "letters:app", "-v", "-j", "2")
        assert (int(count > 0), count) == (code, out.count("diverged at")), (since, out)
    assert 2 == eventlog(folder, "replay", "--since", "yesterday", "--app", "letters:app", "-j", "2")[0]


def test_an_allow_list_is_a_file_whose_idle_lines_are_told(folder):
    (folder / "known.txt").write_text("letters-* 1 messages[0].content  # the new greeting\nnotes-*\n")
    code, out, err = eventlog(folder, "replay", "--all", "--app", "letters:app", "--allow", "known.txt", "-j", "2")
    assert (0, "5 streams: 0 same 5 allowed") == (code, out.splitlines()[-1].partition("  ")[0])
    assert "the allow-list's line 2 (notes-*) let nothing through" in err
    (folder / "known.txt").write_text("a b c d\n")
    assert 2 == eventlog(folder, "replay", "--all", "--app", "letters:app", "--allow", "known.txt", "-j", "2")[0]


ENDS = """
from intentlog.agents import Aggregate, App, agent, applies
from intentlog.eventlog import event
import os, sys

@event("noted")
class Noted:
    text: str

class Page(Aggregate):
    text: str = ""

    @applies(Noted)
    def _(self, noted: Noted) -> "Page":
        if HOW == "applier":
            {ends}
        return self.evolve(text=noted.text)

HOW = os.environ.get("HOW", "")

@agent("pages", state=Page)
async def pages(ctx, text: str):
    if HOW == "agent":
        {ends}
    ctx.emit(Noted(text))
    return text

app = App(agents=[pages])
"""


@pytest.mark.parametrize(
    "how, ends",
    [("agent", "os._exit(0)"), ("agent", "os.execv('/bin/true', ['true'])"), ("agent", "sys.exit(0)"), ("applier", "os._exit(0)"), ("applier", "sys.exit(0)")],
)
def test_code_that_ends_its_process_is_never_taken_for_a_success(tmp_path, monkeypatch, how, ends):
    (tmp_path / "pages.py").write_text(ENDS.format(ends=ends))
    for command in (("init",), ("send", "pages", "a", '"x"'), ("send", "pages", "b", '"y"'), ("run", "pages:app", "--until-idle")):
        assert 0 == eventlog(tmp_path, *command, apart=True)[0], command
    monkeypatch.setenv("HOW", how)
    for words in ((), ("--json",)):
        code, out, _ = eventlog(tmp_path, "replay", "--all", "--app", "pages:app", *words, apart=True)
        assert (code, 0) != (0, code), words
        assert "cannot" in out or "diverged" in out, words
        if "exit" in ends and how == "applier":
            assert "pages-a" in out
            assert "pages-b" in out
    if how == "applier" and "execv" not in ends:
        for asked in (("state", "pages-a"), ("bisect", "pages-a", "st.text == 'x'")):
            code, out, err = eventlog(tmp_path, *asked, "--app", "pages:app", apart=True)
            assert (3, "") == (code, out), asked
            assert "ended the process" in err, asked


def test_an_app_that_has_no_such_agent_or_cannot_be_loaded_is_told_by_the_command_that_asked(made):
    assert 2 == eventlog(made, "replay", "--category", "nobody", "--app", "letters:app", apart=True)[0]
    code, _, err = eventlog(made, "replay", "--all", "--app", "letters:nothing", apart=True)
    assert (2, True) == (code, "the module letters has no 'nothing'" in err)
    code, _, err = eventlog(made, "--debug", "replay", "--all", "--app", "code:app", apart=True)
    assert (2, True) == (code, "Traceback" in err)
