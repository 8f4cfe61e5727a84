"""The arrows between the rooms hold, and the contracts that say so would notice if they did not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.house.tree import ROOMS, ROOT, python

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

BREACHES = {
    "the record knows the agents": ("eventlog", "from ..agents import __doc__", "eventlog <- agents <- effector | replay"),
    "agents know the hands": ("agents", "from ..effector import __doc__", "eventlog <- agents <- effector | replay"),
    "hands know the memory": ("effector", "from ..replay import __doc__", "eventlog <- agents <- effector | replay"),
    "memory has hands": ("replay", "from ..effector import __doc__", "replay never reaches the effector"),
    "memory has wires": ("replay", "import httpx", "replay itself opens no connection"),
    "agents open SQLite": ("agents", "import sqlite3", "agents use the log's protocols, never a driver"),
    "agents open PostgreSQL": ("agents", "import psycopg", "agents use the log's protocols, never a driver"),
    "agents open Kafka": ("agents", "import kafka", "agents use the log's protocols, never a driver"),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / "intentlog" / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(folder: Path) -> tuple[int, str]:
    done = python("-c", LINT, "--no-cache", cwd=folder, COLUMNS="200")
    return done.returncode, done.stdout


def test_every_arrow_points_the_right_way():
    code, output = lint(ROOT)
    assert (0, True) == (code, " 0 broken" in output), output


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_is_noticed(copy, breach):
    room, line, contract = BREACHES[breach]
    (copy / "intentlog" / room / "breach.py").write_text(f"{line}\n")
    code, output = lint(copy)
    assert 1 == code, output
    assert f"{contract} BROKEN" in output
    assert f"intentlog.{room}.breach" in output


def test_memory_reaching_the_hands_through_a_third_room_is_noticed(copy):
    (copy / "intentlog" / "agents" / "breach.py").write_text("from ..effector import __doc__\n")
    (copy / "intentlog" / "replay" / "breach.py").write_text("from ..agents import breach\n")
    code, output = lint(copy)
    assert 1 == code, output
    assert "replay never reaches the effector BROKEN" in output
