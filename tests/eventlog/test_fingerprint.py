"""A fingerprint follows what the code does, not where it stands or how it is laid out."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from intentlog.eventlog.fingerprint import fingerprint

SOURCE = """
from __future__ import annotations
import re
import attrs
from intentlog.eventlog.registry import event

LIMIT = 500
WORD = re.compile("a+")

def inner(x):
    return x * 2

@attrs.frozen
class Line:
    sku: str
    cents: int = 3

@event("x.y", version=1)
class Seen:
    line: Line
    by_name: dict[str, Line]

class Base:
    def shared(self):
        return 1

@attrs.frozen
class State(Base):
    total: int = 0
    seen: frozenset[str] = attrs.Factory(frozenset)

    def apply(self, e: Seen, *, rate=1.5):
        found = {n for n in ("a", "b") if n in {"a", "z"}}
        return attrs.evolve(self, total=min(LIMIT, self.total + inner(e.line.cents)), seen=found) if WORD else self.later(lambda: 7)

    @property
    def half(self):
        return self.total // 2
"""


def load(source: str, name: str = "folded") -> Any:
    module = types.ModuleType(name)
    sys.modules[name] = module  # where annotations are resolved
    try:
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
        return fingerprint(module.State, module.Seen, "note")
    finally:
        del sys.modules[name]


def test_a_second_import_has_the_same_fingerprint():
    assert load(SOURCE) == load(SOURCE)


def test_layout_and_comments_do_not_count():
    moved = "# moved down\n\n" + SOURCE.replace("    def apply", "    # why\n\n    def apply").replace(
        "return self.total // 2", "return (\n            self.total\n            // 2  # half\n        )"
    )
    assert load(SOURCE) == load(moved)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total // 2", "total // 3"),
        ("self.total +", "self.total -"),
        ("LIMIT = 500", "LIMIT = 501"),
        ("x * 2", "x * 3"),
        ('"a+"', '"b+"'),
        ("rate=1.5", "rate=1.6"),
        ("lambda: 7", "lambda: 8"),
        ('{"a", "z"}', '{"a", "y"}'),
        ("cents: int = 3", "cents: int = 4"),
        ("cents: int", "cents: float"),
        ("dict[str, Line]", "dict[int, Line]"),
        ("sku: str", "name: str"),
        ("total: int = 0", "total: int = 1"),
        ("version=1", "version=2"),
        ('"x.y"', '"x.z"'),
        ("return 1", "return 2"),
        ("def half", "def third"),
        ("(frozenset)", "(lambda: frozenset('a'))"),
    ],
)
def test_a_change_of_meaning_changes_it(old: str, new: str):
    assert 1 <= SOURCE.count(old)
    assert load(SOURCE) != load(SOURCE.replace(old, new))


def test_another_process_and_hash_seed_has_the_same_fingerprint(tmp_path: Path):
    (tmp_path / "folded.py").write_text(SOURCE)
    program = "import folded; from intentlog.eventlog.fingerprint import fingerprint as f; print(f(folded.State, folded.Seen, 'note'))"
    seen = {
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True).stdout.strip()
        for seed in "012"
    }
    assert {load(SOURCE)} == seen


@pytest.mark.parametrize("default", ["{}", "[]", "attrs.Factory(lambda: re.compile('b+'))", "attrs.Factory(functools.partial(copy.deepcopy, {}))"])
def test_what_else_the_process_has_done_does_not_count(tmp_path: Path, default: str):
    """Python's modules keep caches, of patterns and of formats; a copy that is made of a default reaches some of them."""
    source = f"""
import copy, functools, re
import attrs
from intentlog.agents import Aggregate

class State(Aggregate):
    lines: dict[str, int] = {default}
"""
    (tmp_path / "folded.py").write_text(source)
    program = "import re; re.compile({!r}); import folded; from intentlog.eventlog.fingerprint import fingerprint as f; print(f(folded.State))"
    done = [subprocess.run([sys.executable, "-c", program.format(word)], cwd=tmp_path, capture_output=True, text=True, check=True) for word in ("a", "bb")]
    assert done[0].stdout == done[1].stdout


@pytest.mark.parametrize("name", ["test", "calendar"])
def test_a_module_of_ones_own_is_followed_whatever_it_is_called(tmp_path: Path, name: str):
    program = f"import {name}; from intentlog.eventlog.fingerprint import fingerprint as f; print(f({name}.State, {name}.fold))"
    seen = set()
    for step in "12":
        folder = tmp_path / step
        folder.mkdir()
        (folder / f"{name}.py").write_text(f"class State:\n    step = {step}\n\ndef fold(x):\n    return x + {step}\n")
        seen.add(subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True).stdout)
    assert 2 == len(seen)


def test_what_a_closure_holds_counts():
    def adder(step: int) -> Any:
        return lambda x: x + step

    assert fingerprint(adder(1)) == fingerprint(adder(1)) != fingerprint(adder(2))


def test_the_order_and_number_of_things_count():
    assert 4 == len({fingerprint("a", "b"), fingerprint("b", "a"), fingerprint("ab"), fingerprint("a", "b", "")})


def test_things_that_name_each_other_come_to_an_end():
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    assert 32 == len(fingerprint(even))
