"""``python -m benchmarks``: measure the bars, print the table, fail when one is missed or a ratio has regressed."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from . import p1_activations, p2_fold, p4_growth, p7_memory, ratios, table
from .measuring import ROOT, ContenderFailed, Line
from .sizes import FULL, QUICK, TINY, Sizes, Told

BARS: Final[dict[str, Callable[[Path, Sizes, Told], list[Line]]]] = {
    "P1": p1_activations.lines,
    "P2": p2_fold.lines,
    "P4": p4_growth.lines,
    "P7": p7_memory.lines,
}
SIZES: Final = {"full": FULL, "quick": QUICK, "tiny": TINY}


@click.command()
@click.option("--only", "only", multiple=True, type=click.Choice(list(BARS), case_sensitive=False), help="Measure this bar; may be given again.")
@click.option("--quick", "size", flag_value="quick", help="Smaller amounts; nothing is compared with the committed ratios.")
@click.option("--tiny", "size", flag_value="tiny", help="Only to see that everything runs; the figures mean nothing.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here as well.")
@click.option("--save", is_flag=True, help="Take this run's ratios over into benchmarks/ratios.json.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=ROOT / ".cache", help="Where files are made (default: .cache).")
def main(only: tuple[str, ...], size: str | None, json_file: Path | None, save: bool, folder: Path) -> None:
    """Measure ours against the bounds and the rivals. Exit code 1: a bar was missed or a ratio fell by 25 %."""
    sizes = SIZES[size or "full"]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as made:
        machine = table.this_machine(Path(made))
        lines = [line for name, measure in BARS.items() if not only or name in only for line in _measured(name, measure, Path(made), sizes)]
    if save and sizes.counts:
        ratios.save(lines)
    committed = ratios.load() if sizes.counts else {}
    table.show(Console(width=None if sys.stdout.isatty() else 130), machine, lines, committed)
    if json_file is not None:
        json_file.write_text(json.dumps(table.as_tree(machine, lines, committed), indent=2, ensure_ascii=False) + "\n", "utf-8")
    raise SystemExit(1 if any(table.judge(line, committed).fails for line in lines) else 0)


def _measured(name: str, measure: Callable[[Path, Sizes, Told], list[Line]], folder: Path, sizes: Sizes) -> list[Line]:
    own = folder / name
    own.mkdir()
    notes = Console(stderr=True, highlight=False, markup=False)
    try:
        return measure(own, sizes, lambda doing: notes.print(f"· {name}: {doing}"))
    except ContenderFailed as problem:
        return [Line(name, "failed", "", "", "", note=str(problem), failed=True)]


if __name__ == "__main__":
    main()
