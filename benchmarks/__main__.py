"""``python -m benchmarks``: measure the bars, print the table, fail when one is missed or a ratio has regressed."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click
from rich.console import Console

from . import p1_activations, p2_fold, p3_replay, p4_growth, p5_resume, p6_effector, p7_memory, p8_writers, ratios, table
from .measuring import ROOT, ContenderFailed, Line
from .sizes import FULL, QUICK, TINY, Sizes
from .stores import STORES, NotHere, Store

#: Each has ``lines(store, sizes, told)``, and in ``STORES`` the names of the stores it is measured on.
BARS: Final[dict[str, ModuleType]] = {
    "P1": p1_activations,
    "P2": p2_fold,
    "P3": p3_replay,
    "P4": p4_growth,
    "P5": p5_resume,
    "P6": p6_effector,
    "P7": p7_memory,
    "P8": p8_writers,
}
SIZES: Final = {"full": FULL, "quick": QUICK, "tiny": TINY}


@click.command()
@click.option("--only", "only", multiple=True, type=click.Choice(list(BARS), case_sensitive=False), help="Measure this bar; may be given again.")
@click.option("--store", "chosen", multiple=True, type=click.Choice(list(STORES), case_sensitive=False), help="Measure on this store; may be given again.")
@click.option("--quick", "size", flag_value="quick", help="Smaller amounts; nothing is compared with the committed ratios.")
@click.option("--tiny", "size", flag_value="tiny", help="Only to see that everything runs; the figures mean nothing.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here as well.")
@click.option("--save", is_flag=True, help="Take this run's ratios over into benchmarks/ratios.json.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), default=ROOT / ".cache", help="Where files are made (default: .cache).")
def main(only: tuple[str, ...], chosen: tuple[str, ...], size: str | None, json_file: Path | None, save: bool, folder: Path) -> None:
    """Measure ours against the bounds and the rivals. Exit code 1: a bar was missed or a ratio fell by 25 %."""
    sizes = SIZES[size or "full"]
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as made:
        machine = table.this_machine(Path(made))
        lines = list(benched(only or tuple(BARS), chosen or tuple(STORES), Path(made), sizes, machine))
    if save and sizes.counts:
        ratios.save(lines)
    committed = ratios.load() if sizes.counts else {}
    table.show(Console(width=None if sys.stdout.isatty() else 150), machine, lines, committed)
    if json_file is not None:
        json_file.write_text(json.dumps(table.as_tree(machine, lines, committed), indent=2, ensure_ascii=False) + "\n", "utf-8")
    raise SystemExit(1 if any(table.judge(line, committed).fails for line in lines) else 0)


def benched(only: tuple[str, ...], chosen: tuple[str, ...], folder: Path, sizes: Sizes, machine: dict[str, Any]) -> Iterator[Line]:
    """Bar by bar, and within one store by store; what the stores say about themselves goes into ``machine``."""
    with ExitStack() as held:
        stores: dict[str, Store | NotHere] = {}
        for name in only:
            for each in chosen:
                kind = STORES[each]
                if kind.name not in BARS[name].STORES:
                    continue
                if each not in stores:
                    stores[each] = _opened(kind, folder, held)
                store = stores[each]
                if isinstance(store, NotHere):
                    yield Line(name, kind.name, "everything", "", "", "", note=str(store))
                else:
                    machine.update(store.about())
                    yield from _lines(name, store, sizes)


def _opened(kind: Callable[[Path], Store], folder: Path, held: ExitStack) -> Store | NotHere:
    try:
        store = kind(folder)
    except NotHere as missing:
        return missing
    held.callback(store.close)
    return store


def _lines(name: str, store: Store, sizes: Sizes) -> list[Line]:
    notes = Console(stderr=True, highlight=False, markup=False)
    try:
        found: list[Line] = BARS[name].lines(store, sizes, lambda doing: notes.print(f"· {name} on {store.name}: {doing}"))
    except ContenderFailed as problem:
        return [Line(name, store.name, "failed", "", "", "", note=str(problem), failed=True)]
    return found


if __name__ == "__main__":
    main()
