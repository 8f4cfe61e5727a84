"""What the shell knows next time, of each log; and nothing secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from intentlog.replay.shell.remembering import Memory, state_folder


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory.of(tmp_path / "state", "sqlite:///eventlog.db", tmp_path)


def test_the_stream_looked_at_last_is_known(memory):
    assert "" == memory.last_stream()
    memory.remember("accounts-acct-42")
    memory.remember("accounts-acct-43")
    assert "accounts-acct-43" == memory.last_stream()


def test_each_log_has_its_own(memory, tmp_path):
    memory.remember("accounts-acct-42")
    assert "" == Memory.of(memory.folder, "sqlite:///other.db", tmp_path).last_stream()
    assert "" == Memory.of(memory.folder, "sqlite:///eventlog.db", tmp_path / "elsewhere").last_stream()
    assert "accounts-acct-42" == Memory.of(memory.folder, f"sqlite:///{tmp_path}/eventlog.db", tmp_path / "elsewhere").last_stream()


def test_the_lines_typed_are_known_the_last_ones(memory):
    memory.keep("history", [f"back {number}" for number in range(3_000)])
    assert (2_000, "back 2999") == (len(memory.lines("history")), memory.lines("history")[-1])


def test_no_password_is_kept(tmp_path):
    memory = Memory.of(tmp_path, "postgresql://reader:hunter2@db/log?sslpassword=hunter3", tmp_path)
    memory.remember("accounts-acct-42")
    memory.keep("history", ["next"])
    assert [] == [path for path in tmp_path.iterdir() if "hunter" in path.read_text() or "hunter" in path.name]


def test_what_is_kept_is_for_its_owner_only(memory):
    memory.remember("accounts-acct-42")
    memory.keep("history", ["next"])
    memory.prepared("ptpython")
    assert {0o600} == {path.stat().st_mode & 0o777 for path in memory.folder.iterdir()}


def test_a_place_that_cannot_be_written_costs_nothing_but_the_memory(tmp_path):
    (tmp_path / "file").write_text("")
    memory = Memory.of(tmp_path / "file" / "below", "sqlite:///eventlog.db", tmp_path)
    memory.remember("accounts-acct-42")
    memory.keep("history", ["next"])
    assert ("", [], None) == (memory.last_stream(), memory.lines("history"), memory.prepared("ptpython"))


@pytest.mark.parametrize("text", ["", "[", "[]", '{"stream": 3}', "null"])
def test_what_somebody_broke_is_as_if_it_were_not_there(memory, text):
    memory.remember("accounts-acct-42")
    (path,) = memory.folder.glob("*.json")
    path.write_text(text)
    assert "" == memory.last_stream()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/me"}, "/state"),
        ({"HOME": "/me"}, "/me/.local/state"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/me"}, "/me/.local/state"),
    ],
)
def test_it_is_kept_where_such_things_belong(environment, expected):
    assert Path(expected) / "intentlog" / "shell" == state_folder(environment)
