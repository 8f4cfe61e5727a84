"""The shell in a real terminal: the session written down in docs/shell.md holds, on every front end, at 80 and at 120 columns."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.house.snippets import blocks
from tests.house.tree import ROOT, python
from tests.replay.shell.terminal import PROMPT, NoTerminal, Terminal

PAGE = ROOT / "docs" / "shell.md"
FRONTS = ("ptpython", "ipython", "plain")
#: What differs from run to run, and what stands there instead.
VARYING = (
    (re.compile(r"\d\d:\d\d:\d\d\.\d\d\d"), "hh:mm:ss.fff"),
    (re.compile(r"(until|expires) +\d.*"), r"\1"),  # tomorrow's takes more room, and what is behind it is cut
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "yyyy-mm-dd"),
    (re.compile(r"[\d.]+ m?s\b"), "a moment"),
    (re.compile(r"(attempt \d+) by .*"), r"\1"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's own examples leave: the log, a bundle and the code."""
    made = tmp_path_factory.mktemp("page")
    done = python("-W", "error", ROOT / "tests" / "house" / "snippets.py", PAGE, ROOT / "Makefile", cwd=made)
    assert 0 == done.returncode, done.stdout
    return made


def opened(folder: Path, tmp_path: Path, *options: str, columns: int = 80) -> Terminal:
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": "", "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [str(Path(sys.executable).parent / "eventlog"), "shell", *options]
    try:
        return Terminal(command, folder, columns=columns, environment=environment)
    except NoTerminal as reason:
        pytest.skip(str(reason))


def recorded() -> list[str]:
    """The session as it stands in the page."""
    found = next(block.body for block in blocks(PAGE.read_text("utf-8")) if block.info == "text" and PROMPT.match(block.body.partition("\n")[0]))
    return [line.rstrip() for line in found.splitlines() if line.strip()]


def differences(expected: list[str], seen: list[str]) -> list[str]:
    """Lines that are not as written down. A line that was cut there may go on here."""
    wrong = [f"{place}: {a!r} is {b!r}" for place, (a, b) in enumerate(zip(expected, seen, strict=False)) if not same(a, b)]
    return wrong + [f"{len(expected)} lines are {len(seen)}"] * (len(expected) != len(seen))


def same(expected: str, seen: str) -> bool:
    a, b = steady(expected), steady(seen)
    return b.startswith(a[:-1]) if a.endswith("…") else a == b


def steady(line: str) -> str:
    for pattern, instead in VARYING:
        line = pattern.sub(instead, line)
    return line.rstrip()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("front", FRONTS)
def test_the_recorded_session_holds(folder, tmp_path, front, columns):
    expected = recorded()
    with opened(folder, tmp_path, "accounts-acct-42", "--app", "refunds:app", f"--{front}", columns=columns) as terminal:
        for line in expected:
            if (typed := PROMPT.match(line)) and typed["typed"]:
                screen = terminal.enter(typed["typed"])
    begin = next(place for place, line in enumerate(screen) if PROMPT.match(line))
    seen = [line for line in screen[begin:] if line]
    assert [] == differences(expected, seen[:-1]), "\n".join(seen)
    assert [] == [line for line in seen if len(line) > columns]


@pytest.mark.parametrize("front", FRONTS)
def test_it_is_coloured_and_goes_on_where_it_was(folder, tmp_path, front):
    with opened(folder, tmp_path, "accounts-acct-42", "--app", "refunds:app", f"--{front}") as terminal:
        terminal.enter("st")
        assert "\x1b[" in "".join(line for line in terminal.screen(coloured=True) if "refunded_cents" in line)
        terminal.ready()
        terminal.keys("C-d")
        assert 0 == terminal.ended()
    with opened(folder, tmp_path, "--app", "refunds:app", f"--{front}") as terminal:
        terminal.ready()
        terminal.wait(lambda lines: _asked_for_the_last(terminal, lines), "the line typed last time")


def _asked_for_the_last(terminal: Terminal, lines: list[str]) -> bool:
    """Press the key again and again: what was typed last time may still be being read."""
    terminal.keys("Up")
    return any(line.endswith("accounts-acct-42 › st") for line in lines)


@pytest.mark.parametrize(("front", "text", "menu"), [("ptpython", "until st.ref", "refunded_cents"), ("plain", "until st.ref", "refunded_cents")])
def test_the_tabulator_completes(folder, tmp_path, front, text, menu):
    with opened(folder, tmp_path, "accounts-acct-42", "--app", "refunds:app", f"--{front}") as terminal:
        terminal.ready()
        terminal.type(text)
        terminal.keys("Tab")
        terminal.wait(lambda lines: any(menu in line for line in lines), menu)


@pytest.mark.parametrize("front", FRONTS)
def test_without_python_nothing_that_is_typed_is_run(folder, tmp_path, front):
    """What Python, IPython's magics, a Unix shell or the way IPython hands lines over would run leaves no file behind."""
    marker = folder / f"ran-{front}"
    lines = [f"open('{marker.name}', 'w')", f"!touch {marker.name}", f"%sx touch {marker.name}", f"import os; os.mkdir('{marker.name}')"]
    lines += [f"__eventlog_do__('x') or open('{marker.name}', 'w')"]
    with opened(folder, tmp_path, "accounts-acct-42", "--app", "refunds:app", "--no-python", f"--{front}", columns=160) as terminal:
        for place, line in enumerate(lines, 1):
            screen = terminal.enter(line)
            assert place == " ".join(screen).count("Python is off here (--no-python)"), "\n".join(screen)
        assert any("refunded_cents" in each and "4300" in each for each in terminal.enter("st"))
        terminal.keys("C-d")
        assert 0 == terminal.ended()
    assert not marker.exists()
