"""The checkout as these tests see it: its rooms, its files, and a clean copy of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("eventlog", "agents", "effector", "replay")


def files() -> list[Path]:
    """Every file of the checkout that git tracks or would track, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return sorted({Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()})


def modules(*folders: str) -> list[Path]:
    """The Python files below ``folders`` (the four rooms when none is given), relative to the root."""
    return [path for path in files() if path.suffix == ".py" and path.parts[0] in (folders or ROOMS)]


def copy_to(target: Path) -> Path:
    """The files of the checkout, and nothing that lies about from earlier builds."""
    for path in files():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path)
    return target


def python(*arguments: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with both outputs in one text."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
