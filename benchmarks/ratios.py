"""The committed ratios, and what counts as a regression against them: more than 25 %."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from .measuring import Line

COMMITTED: Final = Path(__file__).with_name("ratios.json")
TOLERANCE: Final = 0.25


def load(path: Path = COMMITTED) -> dict[str, float]:
    """Key of the row → ratio; empty when nothing was committed yet."""
    if not path.exists():
        return {}
    found: dict[str, float] = json.loads(path.read_text("utf-8"))
    return found


def save(lines: Iterable[Line], path: Path = COMMITTED) -> None:
    """Take over the ratios of these rows; others stay."""
    ratios = load(path) | {line.key: round(line.ratio, 3) for line in lines if line.ratio is not None and line.bar is not None}
    path.write_text(json.dumps(ratios, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def regressed(line: Line, committed: Mapping[str, float]) -> bool:
    """Whether a row with a bar is more than 25 % worse than it was."""
    before = committed.get(line.key)
    if before is None or line.ratio is None or line.bar is None:
        return False
    return line.ratio > before * (1 + TOLERANCE) if line.ceiling else line.ratio < before * (1 - TOLERANCE)
