"""What was measured, as a table for people and as JSON for programs."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from rich.console import Console
from rich.table import Table

from . import ratios
from .measuring import Line

#: Name, and whether it is set to the right.
_COLUMNS: Final = (
    ("", False),
    ("store", False),
    ("what", False),
    ("ours", True),
    ("against", False),
    ("theirs", True),
    ("ratio", True),
    ("bar", True),
    ("", False),
)


@attrs.frozen
class Verdict:
    """What is said about one row."""

    mark: str
    style: str
    #: Whether the run fails because of it.
    fails: bool = False


def judge(line: Line, committed: Mapping[str, float]) -> Verdict:
    """✓ met, ✗ missed or regressed, – for information, ? not measured."""
    if line.ratio is None:
        return Verdict("✗ failed", "red", fails=True) if line.failed else Verdict("? not measured", "yellow")
    if line.met is False:
        return Verdict("✗ missed", "red", fails=True)
    if ratios.regressed(line, committed):
        return Verdict(f"✗ was {committed[line.key]:.3g}", "red", fails=True)
    return Verdict("✓", "green") if line.met else Verdict("–", "dim")


def show(console: Console, machine: Mapping[str, Any], lines: Iterable[Line], committed: Mapping[str, float]) -> None:
    """Print the table; notes stand below it."""
    stores = f"SQLite {machine['sqlite']}" + (f", PostgreSQL {machine['postgresql']}" if "postgresql" in machine else "")
    table = Table(title=f"{machine['cores']} cores, Python {machine['python']}, {stores}, one fsync {machine['fsync_ms']:.2f} ms", title_justify="left")
    for name, right in _COLUMNS:
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    notes: list[str] = []
    before: tuple[str, str] | None = None
    for line in lines:
        verdict = judge(line, committed)
        if line.note:
            notes.append(line.note)
        bar = "" if line.bar is None else f"{'≤' if line.ceiling else '≥'} {line.bar:g}"
        ratio = "" if line.ratio is None else f"{line.ratio:.3g}"
        if before and before != (line.bar_id, line.store):
            table.add_section()
        first = (line.bar_id, line.store) if (line.bar_id, line.store) != before else ("", "")
        before = (line.bar_id, line.store)
        table.add_row(*first, line.what, line.ours, line.against, line.theirs, ratio, bar, f"[{verdict.style}]{verdict.mark}[/]")
    console.print(table)
    for note in dict.fromkeys(notes):
        console.print(note, markup=False, highlight=False)


def as_tree(machine: Mapping[str, Any], lines: Iterable[Line], committed: Mapping[str, float]) -> dict[str, Any]:
    """The same for ``--json``."""
    return {
        "machine": dict(machine),
        "lines": [{**attrs.asdict(line), "verdict": judge(line, committed).mark, "committed": committed.get(line.key)} for line in lines],
    }


def this_machine(folder: Path) -> dict[str, Any]:
    """What the figures depend on besides the code; ``fsync_ms`` is the median of 50 in ``folder``."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": platform.system(),
        "fsync_ms": _fsync_ms(folder),
    }


def _fsync_ms(folder: Path) -> float:
    path = folder / "fsync"
    times = []
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    path.unlink()
    return statistics.median(times)
