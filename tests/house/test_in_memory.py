"""``.ci/in-memory``: temporary files on a RAM disk where there is one with room, and nothing left there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT

SAYS = ("sh", "-c", 'echo "${TMPDIR:-nowhere}"; ls -d "${TMPDIR:-/nowhere}"; exit 7')


def in_memory(disk: Path, *command: str, **environment: str) -> tuple[int, list[str]]:
    known = {name: value for name, value in os.environ.items() if name != "TMPDIR"} | {"IN_MEMORY_DISK": str(disk), "IN_MEMORY_ROOM_KB": "1"} | environment
    done = subprocess.run([str(ROOT / ".ci/in-memory"), *command], env=known, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout.splitlines()


def test_a_command_has_a_folder_for_as_long_as_it_runs_and_its_exit_code_is_passed_on(tmp_path):
    code, said = in_memory(tmp_path, *SAYS)
    assert 7 == code
    assert said[0] == said[1]
    assert tmp_path == Path(said[0]).parent
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("case", ["no room", "no disk", "somewhere else", "no right to write"])
def test_where_it_cannot_or_should_not_the_command_runs_as_it_is(tmp_path, case):
    disk, more = tmp_path, {}
    if case == "no room":
        more = {"IN_MEMORY_ROOM_KB": str(1 << 50)}
    elif case == "no disk":
        disk = tmp_path / "nowhere"
    elif case == "somewhere else":
        more = {"TMPDIR": "/somewhere/else"}
    else:
        disk = Path("/proc/self/fd")  # nobody makes a folder there
    code, said = in_memory(disk, *SAYS, **more)
    assert (7, more.get("TMPDIR", "nowhere")) == (code, said[0])
    assert [] == list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_and_what_another_one_uses_is_not(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead, alive = tmp_path / f"il-{ended.pid}", tmp_path / f"il-{os.getpid()}"
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "file").touch()
    assert 7 == in_memory(tmp_path, *SAYS)[0]
    assert [alive] == list(tmp_path.iterdir())
