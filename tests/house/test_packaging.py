"""What is built is what stands in the folders: nothing forgotten, and no bare name at the top."""

from __future__ import annotations

import configparser
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.house.tree import ROOMS, ROOT, copy_to, files, python


@pytest.fixture(scope="module")
def settings() -> configparser.ConfigParser:
    parsed = configparser.ConfigParser()
    parsed.read(ROOT / "setup.cfg", encoding="utf-8")
    return parsed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # From a copy: a build/lib left in the checkout would carry deleted modules into the wheel.
    source, target = copy_to(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("wheel")
    built = python("-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", target, source)
    assert 0 == built.returncode, built.stdout
    (path,) = target.glob("*.whl")
    return path


def lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def test_setup_cfg_lists_every_package_and_no_other(settings):
    folders = ["intentlog." + ".".join(path.parent.parts) for path in files() if path.name == "__init__.py" and path.parts[0] in ROOMS]
    assert sorted(folders) == sorted(lines(settings["options"]["packages"]))


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for path in files() if path.suffix == ".py" and path.parts[0] in ROOMS}
    assert [] == sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").is_file())


def test_the_wheel_holds_every_file_of_the_rooms(wheel):
    wanted = {f"intentlog/{path}" for path in files() if path.parts[0] in ROOMS}
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert wanted == held


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_says_that_it_is_typed(wheel, room):
    assert f"intentlog/{room}/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_takes_one_name_only(wheel):
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"intentlog", "intentlog-0.1.0.dist-info"} == tops


def test_the_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read("intentlog-0.1.0.dist-info/METADATA"))
        entry_points = archive.read("intentlog-0.1.0.dist-info/entry_points.txt").decode()
        licence = archive.read("intentlog-0.1.0.dist-info/licenses/LICENSE").decode()
    assert ("intentlog", "0.1.0", "Apache-2.0", ">=3.11") == tuple(metadata[key] for key in ("Name", "Version", "License-Expression", "Requires-Python"))
    assert "eventlog = intentlog.eventlog.cli:main" in entry_points
    assert "Version 2.0, January 2004" in licence


def test_every_module_of_the_wheel_imports_far_from_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
        names = sorted(name[:-3].replace("/", ".").removesuffix(".__init__") for name in archive.namelist() if name.endswith(".py"))
    optional = ("psycopg", "kafka", "redis")
    program = f"""
import importlib, sys
for name in {[name for name in names if not name.endswith("__main__")]!r}:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name not in {optional!r}:
            raise
    else:
        assert module.__file__.startswith({str(tmp_path)!r}), module.__file__
"""
    done = python("-W", "error", "-c", program, cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert (0, "") == (done.returncode, done.stdout)
