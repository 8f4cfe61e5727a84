"""Runs the examples of one page, in order: ``python snippets.py PAGE.md``, in the folder that is to be the page's own.

The convention is written down in docs/contributing.md. One process a page, because event types register for the whole process.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

# Behind everything else, so that it hides nothing: a page's folder is the first.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from tests.acceptance.forking import Forked

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)``` *$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (?P<name>[\w/.-]+\.[a-z]+)\n")
EXPECTED = re.compile(r"\s+# (?:exit (?P<code>\d+)|(?P<stop>until \^C))$")
#: What a shell would do something about, wherever it stands; too often is no harm.
EXPANDED = re.compile(r"[$`*?~\n]")
#: Info strings that a page may use; whatever is not run is not called Python or console.
LANGUAGES = {"python", "console", "text", "json", "sql", "toml", "ini", "yaml", "html", "makefile"}
RUN = {"eventlog", "python", "psql", "pg_dump", "pg_restore"}
SHOWN = {"git", "pip", "cd", "export"}
PATIENCE = 120.0
UNTIL_STOPPED = 3.0


class Block(NamedTuple):
    """A fenced block and the line of its first line."""

    info: str
    line: int
    body: str


class Wrong(Exception):
    """An example that does not hold, with the page and line where it stands."""


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, without their indentation."""
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] if line.strip() else line for line in match["body"].splitlines(keepends=True))
        found.append(Block(match["info"].strip(), text.count("\n", 0, match.start("body")) + 1, body))
    return found


def commands(body: str) -> list[tuple[int, str]]:
    """The ``$ `` lines of a console block with their offsets, continuation lines joined; what lies between is output."""
    found: list[tuple[int, str]] = []
    lines = enumerate(body.splitlines())
    for offset, line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines)[1].strip()
            found.append((offset, command))
    return found


def run_page(name: str, text: str, makefile: str) -> None:
    """Run every example of ``text`` in the current folder; raises ``Wrong`` at the first that does not hold."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    sys.path.insert(0, os.getcwd())
    for block in blocks(text):
        place = f"{name}:{block.line}"
        if block.info not in LANGUAGES:
            raise Wrong(f"{place}: a block is one of {', '.join(sorted(LANGUAGES))}, not {block.info!r}")
        if block.info == "python":
            run_python(block, place, namespace)
        elif block.info == "console":
            for offset, command in commands(block.body):
                run_command(command, f"{name}:{block.line + offset}", makefile)
        elif named := FILE.match(block.body):
            write(named["name"], block.body[named.end() :])


def run_python(block: Block, place: str, namespace: dict[str, object]) -> None:
    """Execute the block, or write it to the file it names in its first line and import that."""
    named = FILE.match(block.body)
    if not named:
        # The newlines put the example's own line number into a traceback.
        exec(compile("\n" * (block.line - 1) + block.body, place.rsplit(":", 1)[0], "exec", dont_inherit=True), namespace)
        return
    write(named["name"], block.body)
    importlib.invalidate_caches()
    module = importlib.import_module(named["name"].removesuffix(".py").replace("/", "."))
    namespace.update({key: value for key, value in vars(module).items() if not key.startswith("_")})


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def run_command(line: str, place: str, makefile: str) -> None:
    """Run ``eventlog``, ``python`` and PostgreSQL's clients, look up ``make`` targets, let set-up lines be."""
    expected = EXPECTED.search(line)
    command = line[: expected.start()] if expected else line
    first, *rest = shlex.split(command, comments=True)
    if first == "make":
        missing = [target for target in rest if "=" not in target and not re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)]
        if missing:
            raise Wrong(f"{place}: the Makefile has no target {missing[0]}")
    elif first in RUN:
        seen, output = run_until(command, stop=bool(expected and expected["stop"]))
        wanted = {0, 130, -signal.SIGINT} if expected and expected["stop"] else {int(expected["code"]) if expected else 0}
        if seen not in wanted:
            raise Wrong(f"{place}: {command}\nexit code {seen}, expected {' or '.join(map(str, sorted(wanted)))}\n{output}")
    elif first not in SHOWN:
        raise Wrong(f"{place}: {first!r} is neither run ({', '.join(sorted(RUN))}), looked up (make) nor shown ({', '.join(sorted(SHOWN))})")


def run_until(command: str, *, stop: bool) -> tuple[int, str]:
    """Exit code and output of a shell line; one that runs for ever is interrupted as ^C does."""
    words = words_of(command)
    if words is not None:
        forked = Forked("tests.house.command", words, os.environ, Path.cwd())
        try:
            return ended(forked, forked.send_signal, stop=stop)
        finally:
            forked.close()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    child = subprocess.Popen(
        command,
        shell=True,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return ended(child, lambda number: os.killpg(child.pid, number), stop=stop)


def ended(child: subprocess.Popen[str] | Forked, send: Callable[[int], None], *, stop: bool) -> tuple[int, str]:
    """The child's exit code and output, after a signal where it does not end by itself."""
    try:
        output, _ = child.communicate(timeout=UNTIL_STOPPED if stop else PATIENCE)
    except subprocess.TimeoutExpired:
        send(signal.SIGINT if stop else signal.SIGKILL)
        output, _ = child.communicate(timeout=PATIENCE)
    code = child.returncode
    assert code is not None
    return code, output


def words_of(command: str) -> list[str] | None:
    """The words of an ``eventlog`` command that needs no shell, without the first; ``None`` for every other."""
    if EXPANDED.search(command):
        return None
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words = list(reader)
    if words[:1] != ["eventlog"] or any(set(word) <= set("();<>|&") for word in words if word):
        return None
    return words[1:]


if __name__ == "__main__":
    page, makefile_path = map(Path, sys.argv[1:])
    try:
        run_page(page.name, page.read_text("utf-8"), makefile_path.read_text("utf-8"))
    except Wrong as wrong:
        sys.exit(str(wrong))
