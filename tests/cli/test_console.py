"""Exit codes, errors in words, options: the ground rules every sub-command stands on."""

from __future__ import annotations

import subprocess

import click
import pytest
from click.testing import CliRunner

from intentlog.agents.errors import DefinitionError, InputRefused, ModelFailed
from intentlog.eventlog.console import Commands, CouldNot, exit_code_of, explain, masked
from intentlog.eventlog.errors import InvalidName, InvalidUrl, LogUnavailable, StoreSchemaError
from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import begin, call, child


@pytest.mark.parametrize(
    "problem, code",
    [
        (InvalidName("x"), 2),
        (InvalidUrl("x"), 2),
        (DefinitionError("x"), 2),
        (InputRefused("x"), 2),
        (click.UsageError("x"), 2),
        (click.BadParameter("x"), 2),
        (StoreSchemaError("x"), 3),
        (LogUnavailable("x"), 3),
        (ModelFailed("x"), 3),
        (CouldNot("x"), 3),
        (OSError(28, "No space left on device"), 3),
        (RuntimeError("x"), 3),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_kind_of_error_has_its_exit_code(problem, code):
    assert code == exit_code_of(problem)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("postgresql://me:hunter2@db:5432/log", "postgresql://me:***@db:5432/log"),
        ("x 'postgresql://me:p%40ss@db/log?sslmode=require&password=hunter2' y", "x 'postgresql://me:***@db/log?sslmode=require&password=***' y"),
        ("sqlite:////var/lib/eventlog.db", "sqlite:////var/lib/eventlog.db"),
        ("http://127.0.0.1:8080/x and me@example.org", "http://127.0.0.1:8080/x and me@example.org"),
    ],
)
def test_credentials_in_urls_are_masked(text, shown):
    assert shown == masked(text)


def test_a_password_in_a_bad_url_is_not_printed():
    done = call("streams", "--log", "oracle://me:hunter2@db/log")
    assert (2, False, True) == (done.exit_code, "hunter2" in done.output, "oracle://me:***@db/log" in done.stderr)


def test_a_command_returns_its_exit_code():
    @click.group(cls=Commands)
    def group() -> None:
        """Nothing."""

    @group.command()
    def differs() -> int:
        return 1

    @group.command()
    def agrees() -> None:
        """Nothing."""

    assert (1, 0) == (CliRunner().invoke(group, ["differs"]).exit_code, CliRunner().invoke(group, ["agrees"]).exit_code)


@pytest.mark.parametrize("words", [("nope",), ("streams", "--nope"), ("send", "orders"), ("tail", "-n", "x"), ("worker",)])
def test_a_slip_on_the_command_line_is_a_usage_error_with_the_next_step(words):
    done = call(*words)
    assert (2, "", True) == (done.exit_code, done.stdout, "--help" in done.stderr)


def test_an_unexpected_error_says_how_to_see_the_traceback(shop):
    (shop / "bad.py").write_text("raise RuntimeError('wrong day')")
    quiet, loud = child("send", "a", "b", "1", "--app", "bad:app"), child("send", "a", "b", "1", "--app", "bad:app", EVENTLOG_DEBUG="1")
    assert (3, False, True) == (quiet.returncode, "Traceback" in quiet.stderr, "wrong day" in quiet.stderr and "EVENTLOG_DEBUG=1" in quiet.stderr)
    assert (3, True) == (loud.returncode, "Traceback" in loud.stderr)


def test_an_error_of_the_system_names_the_file():
    assert "No such file: x.db" == explain(FileNotFoundError(2, "No such file", "x.db"))


@pytest.mark.parametrize(
    "words", [("streams",), ("tail",), ("dead-letters", "list"), ("dead-letters", "show", "a-b"), ("dead-letters", "redrive", "a-b"), ("send", "a", "b", "1")]
)
def test_a_log_that_is_not_there_is_not_made(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert (3, [], True) == (done.exit_code, list(tmp_path.iterdir()), "eventlog init" in done.stderr)


def test_a_log_in_memory_makes_no_sense_for_a_command_that_reads():
    done = call("tail", "--log", "memory://")
    assert (2, True) == (done.exit_code, "ends with the process" in done.stderr)


def test_the_log_may_be_named_by_the_environment(shop):
    assert 0 == child("init", EVENTLOG_URL="sqlite:///other.db").returncode
    assert (shop / "other.db").exists()


def test_help_lists_every_command_and_imports_no_driver():
    program = "import sys; from intentlog.eventlog.cli import group\ntry: group.main(['--help'])\nexcept SystemExit: pass\n"
    program += "print(sorted(m for m in sys.modules if m in ('intentlog.effector.serving', 'httpx', 'rich', 'sqlite3')))"
    done = subprocess.run([PROGRAM[0], "-c", program], capture_output=True, text=True, check=True)
    wanted = {"init", "send", "run", "worker", "streams", "tail", "dead-letters", "demo"}
    assert wanted <= {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line.strip()}
    assert "[]" == done.stdout.splitlines()[-1]


def test_a_closed_pipe_ends_quietly(shop):
    for number in range(3):
        call("send", "notes", f"k{number}", '"x"')
    with begin("tail", "-f", "--json") as following:
        assert following.stdout is not None and following.stderr is not None
        following.stdout.readline()
        following.stdout.close()
        call("send", "notes", "k", '"one more"')
        call("send", "notes", "k", '"and another"')
        assert (141, "") == (following.wait(20), following.stderr.read())


def test_names_of_streams_are_completed_from_the_log(shop):
    call("send", "notes", "k1", '"x"')
    call("send", "orders", "k2", "order.placed", '{"order_id": "o"}')
    done = child(_EVENTLOG_COMPLETE="bash_complete", COMP_WORDS="eventlog dead-letters show no", COMP_CWORD="3")
    assert "plain,notes-k1" == done.stdout.strip()


def test_completion_without_a_log_says_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = child(_EVENTLOG_COMPLETE="bash_complete", COMP_WORDS="eventlog dead-letters show no", COMP_CWORD="3")
    assert ("", "", []) == (done.stdout.strip(), done.stderr, list(tmp_path.iterdir()))


WORDS = [("tail", "-n"), ("tail", "--after"), ("show", "a-b", "--from"), ("show", "a-b", "--to"), ("show", "a-b", "-n")]
WORDS += [("dead-letters", "show", "a-b", "--seq"), ("dead-letters", "redrive", "a-b", "--seq"), ("cancel", "a", "b", "--seq"), ("stats", "--warn-history")]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_number_that_no_log_can_hold_is_a_usage_error(shop, words):
    done = call(*words, "9" * 23)
    assert (2, "", True) == (done.exit_code, done.stdout, "is not in the range" in done.stderr)


def test_no_words_at_all_ask_for_the_help():
    done = call()
    assert (0, call("--help").stdout, "") == (done.exit_code, done.stdout, done.stderr)


@pytest.mark.parametrize("option", ["--log", "--app"])
def test_an_option_before_the_command_is_told_where_it_goes(option):
    done = call(option, "sqlite:///x.db", "streams")
    assert (2, True) == (done.exit_code, f"{option} goes behind the command: eventlog COMMAND" in done.stderr)


@pytest.mark.parametrize("words", [("streams", "--debug"), ("projections", "list", "--debug")])
def test_the_switch_for_tracebacks_behind_the_command_is_told_where_it_goes(words):
    done = call(*words)
    assert (2, True) == (done.exit_code, "--debug goes before the command: eventlog --debug COMMAND" in done.stderr), done.stderr
