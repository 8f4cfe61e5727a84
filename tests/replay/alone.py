"""Runs reading commands in this process, with the effector gone and every way out of the process watched and shut.

``python alone.py COMMANDS.json``: a list of command lines; prints ``{"codes": […], "outputs": […], "attempts": […]}``.
"""

from __future__ import annotations

import importlib.abc
import json
import os
import sys
from pathlib import Path
from typing import Any

ATTEMPTS: list[str] = []
MOVES = ("os.remove", "os.rename", "os.truncate")
SHUT = ("socket.connect", "socket.sendto", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", *MOVES)


class NoHands(importlib.abc.MetaPathFinder):
    """The effector is not installed here."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("intentlog.effector"):
            ATTEMPTS.append(f"import {name}")
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what writes, calls out or begins a process; files below the folder for answers may be written."""
    if event in SHUT and not (event in MOVES and str(arguments[0]).startswith(os.environ["ANSWERS"])):
        told = f"{event} {arguments!r:.200}"
    elif event == "open" and _writes(arguments) and not str(arguments[0]).startswith((os.environ["ANSWERS"], os.devnull)):
        told = f"open {arguments[0]!r} {arguments[1]!r}"
    else:
        return
    ATTEMPTS.append(told)
    raise PermissionError(f"shut: {told}")


def _writes(arguments: tuple[Any, ...]) -> bool:
    file, mode, flags = arguments
    if isinstance(file, int):  # it is open already, and was looked at then
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def main() -> None:
    """Run the commands."""
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, NoHands())
    from click.testing import CliRunner

    from intentlog.eventlog.cli import group

    sys.addaudithook(watch)
    codes, outputs = [], []
    for words, typed in json.loads(Path(sys.argv[1]).read_text("utf-8")):
        done = CliRunner().invoke(group, words, input=typed, prog_name="eventlog")
        codes.append(done.exit_code)
        outputs.append(done.output)
    sys.stdout.write(json.dumps({"codes": codes, "outputs": outputs, "attempts": ATTEMPTS}))


if __name__ == "__main__":
    main()
