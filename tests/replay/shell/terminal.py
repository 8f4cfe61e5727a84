"""A real terminal for a program: keys go in, and what a person would see comes out. It is one of tmux's."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

PATIENCE = 60.0
ENDED = "ended with"
PROMPT = re.compile(r"(?:at -?\d+  \S.*|no stream) ›(?: (?P<typed>.*))?\Z")


class NoTerminal(Exception):
    """tmux is not here."""


class Terminal:
    """Runs ``command`` in a terminal so many columns wide; ends with the block it is opened for."""

    def __init__(self, command: list[str], folder: Path, *, columns: int, lines: int = 50, environment: dict[str, str] | None = None) -> None:
        if shutil.which("tmux") is None:
            raise NoTerminal("tmux is not installed: apt-get install tmux")
        self._own = Path(tempfile.mkdtemp(prefix="tmux-"))  # a socket's path must be short, and a server that is ending is not to be met again
        self._socket = self._own / "socket"
        (self._own / "conf").write_text("set -g history-limit 20000\nset -g default-terminal screen-256color\nset -s escape-time 0\n")
        given = " ".join(f"{name}={shlex.quote(value)}" for name, value in (environment or {}).items())
        # tmux does not always notice that a program has ended, so its end is printed, and something lives on.
        line = f"cd {shlex.quote(str(folder))} && env {given} {shlex.join(command)}; echo; echo {ENDED} $?; exec sleep 3600"
        self._tmux("-f", str(self._own / "conf"), "new-session", "-d", "-x", str(columns), "-y", str(lines), line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._own, ignore_errors=True)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(["tmux", "-u", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=False)
        return done.stdout

    def screen(self, *, coloured: bool = False) -> list[str]:
        """Every line so far, scrolled off or not."""
        text = self._tmux("capture-pane", "-p", "-S", "-", *(["-e"] if coloured else []))
        return [line.rstrip() for line in text.splitlines()]

    def keys(self, *names: str) -> None:
        """Press keys by their names: ``Enter``, ``Tab``, ``C-d``; a program reads them when it gets to it."""
        self._tmux("send-keys", *names)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def wait(self, until: Callable[[list[str]], bool], what: str) -> list[str]:
        """The screen as soon as ``until`` is true of it."""
        end = time.monotonic() + PATIENCE
        while not until(lines := self.screen()):
            assert time.monotonic() < end, f"waited in vain for {what}:\n" + "\n".join(lines[-40:])
            time.sleep(0.1)
        return lines

    def ready(self) -> list[str]:
        """The screen once the shell waits for a line."""
        return self.wait(lambda lines: _typed(lines) == "", "a prompt")

    def ended(self) -> int:
        """The program's exit code, once it has ended."""
        lines = self.wait(lambda lines: any(line.startswith(ENDED) for line in lines), "its end")
        return int(next(line for line in lines if line.startswith(ENDED)).removeprefix(ENDED))

    def enter(self, line: str) -> list[str]:
        """Type a line at the prompt, and give the screen with its answer when the next prompt is there."""
        before = prompts(self.ready())
        self.type(line)
        self.wait(lambda lines: _typed(lines) == line, f"{line!r} to be typed")
        self.keys("Enter")
        return self.wait(lambda lines: prompts(lines) > before and _typed(lines) == "", f"the answer to {line!r}")


def prompts(lines: list[str]) -> int:
    """How many prompts there are."""
    return sum(1 for line in lines if PROMPT.match(line))


def _typed(lines: list[str]) -> str | None:
    """What stands behind the last prompt, if nothing but a menu stands below it."""
    last = next((found for line in reversed(lines) if (found := PROMPT.match(line))), None)
    return None if last is None else last["typed"] or ""
