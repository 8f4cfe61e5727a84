"""Words that say nothing, places that exist on one machine, and folders nobody asked for stay out."""

from __future__ import annotations

import re

from tests.house.tree import ROOMS, ROOT, files, modules

VAGUE = {"job", "jobs", "task", "tasks", "node", "nodes", "manager", "service", "services", "util", "utils", "helper", "helpers", "common", "misc", "data"}
TOP = {"eventlog", "agents", "effector", "replay", "tests", "benchmarks", "docs", "examples", "setup.cfg"}
BESIDE = {"Makefile", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE"}
# Written in pieces, so that this file is not its own finding.
PLACES = re.compile("|".join(["/" + "root/", "/" + "home/", "/" + "work/", "/" + "Users/", "C:" + r"\\\\"]))
HOSTS = re.compile("|".join([r"pypi\." + "org", "python" + r"hosted\.org", "registry" + r"\.npmjs", "proxy" + r"\.golang", "maven" + r"\.(org|apache)"]))


def findings(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in files():
        for number, line in enumerate((ROOT / path).read_text("utf-8", errors="replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path}:{number}: {line.strip()}")
    return found


def test_no_file_names_a_place_on_somebodys_machine():
    assert [] == findings(PLACES)


def test_no_file_names_a_package_registry():
    assert [] == findings(HOSTS)


def test_no_module_bears_a_vague_name():
    assert [] == [str(path) for path in modules(*ROOMS, "examples", "benchmarks") if {path.stem, path.parent.name} & VAGUE]


def test_nothing_is_called_process():
    assert [] == [str(path) for path in modules() if re.search(r"def process\(", (ROOT / path).read_text("utf-8"))]


def test_the_top_of_the_tree_shows_the_architecture_and_no_more():
    top = {path.parts[0] for path in files() if not path.parts[0].startswith(".")}
    assert set() == top - TOP - BESIDE
    assert set() == TOP - top
