"""What a command did is done when its answer cannot be printed, and the words say which of the two failed."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.cli.conftest import PROGRAM, call


def shell(words: str, to: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(f"{shlex.join(PROGRAM)} {words} {to}", shell=True, capture_output=True, text=True, timeout=60)


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
