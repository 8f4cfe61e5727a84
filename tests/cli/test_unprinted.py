"""What a command did is done when its answer cannot be printed, and the words say which of the two failed."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import call


def shell(words: str, to: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", f"{shlex.join(PROGRAM)} {words} {to}"], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("to, why", [(">/dev/full", "No space left on device"), (">&-", "stdout is closed")])
@pytest.mark.parametrize("form", ["", "--json"])
def test_an_input_is_recorded_though_its_receipt_cannot_be_printed(shop, to, why, form):
    done = shell(f"send notes k '\"x\"' --id one {form}", to)
    told = "eventlog: The input is recorded: notes-k  version 0  id one. Only printing it failed: "
    assert (3, True, True, 1) == (done.returncode, done.stderr.startswith(told), why in done.stderr, done.stderr.count("\n")), done.stderr
    assert '"one"' in call("tail", "--json").stdout


@pytest.mark.parametrize("to", [">/dev/full", ">&-"])
@pytest.mark.parametrize(
    "words",
    ["streams", "streams --json", "tail", "stats", "init", "dead-letters list", "show notes-k", "verify", "run shop:app --until-idle"],
)
def test_a_stdout_that_takes_nothing_is_named(shop, words, to):
    call("send", "notes", "k", '"x"')
    done = shell(words, to)
    assert (3, True, False) == (done.returncode, "stdout" in done.stderr, "Traceback" in done.stderr or "unexpected" in done.stderr), done.stderr


def test_a_signal_is_recorded_though_its_receipt_cannot_be_printed(shop):
    done = shell("signal notes k reply --id r", ">/dev/full")
    assert (3, True) == (done.returncode, "The signal is recorded: notes-k  version 0  id r. Only printing it failed" in done.stderr), done.stderr


@pytest.mark.parametrize("words", ["--help", "tail --help", "--version"])
def test_help_that_cannot_be_printed_names_stdout(shop, words):
    done = shell(words, ">/dev/full")
    assert (3, True) == (done.returncode, "printing to stdout failed: No space left on device" in done.stderr), done.stderr


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
@pytest.mark.parametrize(
    ("words", "code", "answer"),
    [
        ("verify", 0, "1 stream, 1 event: sound"),
        ("replay --all --app shop:app", 0, "1 stream: 1 same"),
        ("replay --all --app shop:app -j 2", 0, "1 stream: 1 same"),
        ("preflight --app shop:app", 0, "0 runs under way"),
        ("show notes-nobody", 3, ""),
    ],
)
def test_a_stderr_that_is_closed_costs_neither_the_answer_nor_the_exit_code(shop, words, code, answer, closed):
    call("send", "notes", "k", '"x"')
    done = shell(words, closed)
    assert (code, True) == (done.returncode, done.stdout.startswith(answer)), done.stdout


@pytest.mark.parametrize("words, code, answer", [("verify", 0, "1 stream, 1 event: sound"), ("show notes-nobody", 3, ""), ("show nobody", 2, "")])
@pytest.mark.parametrize("full", ["2>/dev/full", "2> >(:)"])
def test_a_stderr_that_takes_nothing_costs_neither_the_answer_nor_the_exit_code(shop, words, code, answer, full):
    call("send", "orders", "k", "order.placed", '{"order_id": "o-1"}')  # which verify remarks on without the app
    done = shell(words, full)
    assert (code, True) == (done.returncode, done.stdout.startswith(answer)), done.stdout


@pytest.mark.parametrize("to, why", [(">/dev/full", "printing to stdout failed: No space left on device"), (">&-", "stdout is closed")])
def test_a_shell_that_cannot_print_says_so(shop, to, why):
    call("send", "notes", "k", '"x"')
    done = shell("shell notes-k", f"{to} </dev/null")
    assert (3, True, 1) == (done.returncode, why in done.stderr, done.stderr.count("\n")), done.stderr


def test_a_shell_whose_stdin_is_closed_is_at_the_end_of_its_lines(shop):
    call("send", "notes", "k", '"x"')
    done = shell("shell notes-k", "<&-")
    assert (0, "", "1 event of notes-k") == (done.returncode, done.stderr, done.stdout[:18])


@pytest.mark.parametrize("columns", ["many", "0", "-3", "7"])
def test_a_shell_of_a_width_that_is_none_or_too_narrow_answers_all_the_same(shop, monkeypatch, columns):
    call("send", "notes", "k", '"x"')
    monkeypatch.setenv("COLUMNS", columns)
    done = shell("shell notes-k", "<<< 'st run'")
    assert (0, "", True) == (done.returncode, done.stderr, "inputs" in done.stdout), done


def test_what_turns_the_direction_of_text_reaches_no_terminal_in_an_error(shop):
    call("send", "notes", "\u202ek", '"x"')
    done = shell("show notes-nobody", "")
    assert (3, True, False) == (done.returncode, "There is notes-\\u202ek" in done.stderr, "\u202e" in done.stderr), done.stderr
