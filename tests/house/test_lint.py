"""The code reads as one hand wrote it: ruff finds nothing, and a bare room name would be found."""

from __future__ import annotations

import pytest

from tests.house.tree import ROOMS, ROOT, python


def test_ruff_finds_nothing():
    done = python("-m", "ruff", "check", "--no-cache", "--output-format", "concise", ".")
    assert 0 == done.returncode, done.stdout


def test_every_file_is_formatted():
    done = python("-m", "ruff", "format", "--check", "--no-cache", ".")
    assert 0 == done.returncode, done.stdout


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("folder", ["tests", "examples", "benchmarks", "docs"])
def test_a_bare_room_name_is_found(tmp_path, folder, room):
    source = tmp_path / folder / "bare.py"
    source.parent.mkdir()
    source.write_text(f"import {room}\n")
    done = python("-m", "ruff", "check", "--no-cache", "--config", ROOT / "pyproject.toml", "--select", "TID251", source, cwd=tmp_path)
    assert (1, True) == (done.returncode, f"Import from intentlog.{room}" in done.stdout), done.stdout
