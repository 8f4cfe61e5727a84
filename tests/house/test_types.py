"""The rooms are strictly typed, what uses them is checked against those types, and the checker really sees them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.house.test_packaging import wheel
from tests.house.tree import ROOT, python

__all__ = ["wheel"]

WRONG = "from intentlog.eventlog.names import check_key\n\nkey: int = check_key('acct-42')\n"


def test_rooms_tests_examples_and_benchmarks_are_typed():
    done = subprocess.run([ROOT / ".ci" / "types", sys.executable], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_a_wrong_use_of_a_room_is_seen(tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG)
    done = python("-m", "mypy", "--config-file", ROOT / "pyproject.toml", tmp_path / "wrong.py", MYPYPATH=str(ROOT / "build" / "types"))
    assert 1 == done.returncode, done.stdout
    assert 'wrong.py:3: error: Incompatible types in assignment (expression has type "str", variable has type "int")' in done.stdout


def test_a_wrong_use_of_the_installed_wheel_is_seen(wheel: Path, tmp_path: Path):
    # A checker believes an installed package only where py.typed says so, hence a real environment with the wheel inside.
    made = python("-m", "venv", "--without-pip", tmp_path / "venv")
    assert 0 == made.returncode, made.stdout
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = python("-m", "mypy", "--config-file", "/dev/null", "--python-executable", tmp_path / "venv" / "bin" / "python", "wrong.py", cwd=tmp_path)
    assert (1, True) == (done.returncode, "wrong.py:3: error: Incompatible types in assignment" in done.stdout), done.stdout
