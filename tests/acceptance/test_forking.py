"""A forked child is to whoever watches it what one with its own interpreter is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance import forking
from tests.acceptance.harness import child, end_of, forked

PROGRAM = """
import os, sys, time
print(sys.argv[1:], os.environ["SAID"], os.getcwd())
print("and this", file=sys.stderr)
if sys.argv[1] == "wait":
    print("waits", flush=True)
    time.sleep(60)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "said_and_gone.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "said_and_gone"


@pytest.mark.parametrize("code", ["0", "3"])
def test_it_ends_with_the_same_code_and_words(program, code):
    with child([sys.executable, "-u", "-m", program, code], {"SAID": "this"}) as one, forked(program, [code], {"SAID": "this"}) as other:
        first, second = end_of(one), end_of(other)
    assert (int(code), int(code)) == (first.code, second.code)
    assert sorted(first.output.splitlines()) == sorted(second.output.splitlines())


def test_a_kill_is_a_kill_and_its_process_is_gone(program):
    with forked(program, ["wait"], {"SAID": "this"}) as started:
        assert started.poll() is None
        ended = end_of(started, kill_after=0.5)
    assert (True, -signal.SIGKILL) == (ended.killed, ended.code)
    with pytest.raises(ProcessLookupError):
        os.kill(started.pid, 0)


def test_what_one_is_told_by_its_environment_the_next_one_does_not_know(program):
    with forked(program, ["0"], {"SAID": "this"}) as first:
        assert 0 == end_of(first).code
    with forked(program, ["0"], {}) as second:
        ended = end_of(second)
    assert (1, True) == (ended.code, "KeyError: 'SAID'" in ended.output)


WARNS = "import warnings\nfrom intentlog.agents import App\nwarnings.warn('old', DeprecationWarning)\napp = App(agents=[])\n"


@pytest.mark.parametrize(
    "line, code",
    [("init", 0), ("--help", 0), ("tail", 3), ("tail --no-such-option", 2), ("run warns:app --until-idle", 3), ("run gone:app", 2)],
)
def test_a_command_says_the_same_and_apart_and_a_warning_is_an_error_to_it(tmp_path, line, code):
    words = line.split()
    (one := tmp_path / "one").mkdir()
    (one / "warns.py").write_text(WARNS)
    other = shutil.copytree(one, tmp_path / "two")
    first = subprocess.run([*forking.PROGRAM, *words], cwd=one, capture_output=True, text=True)
    second = forking.eventlog(words, os.environ, other)
    assert code == first.returncode, first.stderr
    assert (first.returncode, first.stdout, first.stderr.replace(str(one), str(other))) == (second.returncode, second.stdout, second.stderr)
