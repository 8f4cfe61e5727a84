"""projections: list, lag, run, rebuild, compare, swap, drop, parked."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intentlog.eventlog.events import NewEvent, StoredEvent
from intentlog.eventlog.ids import id_maker
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.projecting import showing
from intentlog.eventlog.projecting.advancing import Progress
from intentlog.eventlog.versions import ANY
from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import begin, call, child, eventually

VIEWS = """
import os, signal
from intentlog.agents import App, agent
from intentlog.eventlog.projections import OnError, Projection, Projections

@agent("notes")
async def notes(ctx, text: str):
    return text

def total(factor):
    def handle(view, stored, decoded):
        if stored.data == os.environ.get("FATAL", "").encode():
            os.kill(os.getpid(), signal.SIGKILL)
        number = int(stored.data)
        view.put(stored.stream, str(int(view.get(stored.stream) or b"0") + factor * number).encode())
    return handle

def seen(view, stored, decoded):
    view.put(f"{stored.position:09}", stored.stream.encode())

first = Projections([Projection("sums", total(1), types=("n",))])
second = Projections([Projection("sums", total(2), types=("n",), version=2)])
both = Projections([*first, *second, Projection("seen", seen)])
parking = Projections([Projection("sums", total(2), types=("n",), version=2, on_error=OnError.PARK)])
lenient = Projections([Projection("sums", lambda view, stored, decoded: None, types=("n",), version=2)])
app = App(agents=[notes], projections=list(first))
bare = App(agents=[notes])
"""

SLOW = """
import time
from intentlog.eventlog.projections import Projection, Projections

def slow(view, stored, decoded):
    view.put(stored.stream, stored.data)
    time.sleep(0.02)

views = Projections([Projection("slow", slow)])
"""


@pytest.fixture
def views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with ``views.py`` and an empty log, and the current one."""
    (tmp_path / "views.py").write_text(VIEWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "views", raising=False)
    call("init")
    return tmp_path


make_id = id_maker()


def fill(*payloads: bytes, stream: str = "a-1") -> list[StoredEvent]:
    log = open_log("sqlite:///eventlog.db")
    try:
        log.append(stream, [NewEvent(make_id(), "n", 1, payload) for payload in payloads], ANY)
        return list(log.read_all())
    finally:
        log.close()


def projections(*words: str, app: str = "") -> Any:
    return call("projections", *words, *(("--app", f"views:{app}") if app else ()))


def told(*words: str, app: str = "") -> list[Any]:
    done = projections(*words, "--json", app=app)
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(view: str, key: str = "a-1") -> bytes | None:
    log = open_log("sqlite:///eventlog.db", create=False, read_only=True)
    try:
        return log.views.read(view).get(key)
    finally:
        log.close()


def test_from_the_first_version_to_the_second(views: Path) -> None:
    assert (0, "No projections.\n") == ((none := projections("list")).exit_code, none.stdout)
    assert ["not built"] == [each["state"] for each in told("list", app="app")]
    fill(b"1", b"2", b"3")
    assert [{"view": "sums@v1", "position": 3, "handled": 3, "parked": 0, "error": None}] == told("run", "--until-idle", app="first")
    assert (b"6", b"6") == (row("sums"), row("sums@v1"))
    built = projections("rebuild", "sums", app="second")
    assert (0, True) == (built.exit_code, "eventlog projections swap sums --version 2" in built.stdout)
    assert (b"6", b"12") == (row("sums"), row("sums@v2"))
    assert [("sums@v1", "live"), ("sums@v2", "beside")] == [(each["view"], each["state"]) for each in told("list")]
    fill(b"4")
    assert 0 == projections("run", "--until-idle", app="first").exit_code
    (swapped,) = told("swap", "sums", app="second")
    assert {"name": "sums", "old": "sums@v1", "new": "sums@v2", "position": 4} == swapped
    assert b"20" == row("sums")
    assert 3 == projections("drop", "sums", "2").exit_code
    assert (0, "sums@v1 is dropped\n") == ((dropped := projections("drop", "sums", "1")).exit_code, dropped.stdout)
    assert ["sums@v2"] == [each["view"] for each in told("list")]
    assert 3 == projections("drop", "sums", "1").exit_code


def test_a_live_version_is_rebuilt_in_place_only_when_asked(views: Path) -> None:
    fill(b"1")
    projections("run", "--until-idle", app="first")
    refused = projections("rebuild", "sums", app="first")
    assert (3, True) == (refused.exit_code, "--in-place" in refused.stderr and "version=2" in refused.stderr)
    (built,) = told("rebuild", "sums", "--in-place", app="first")
    assert ("sums@v1", 1, 0, True) == (built["view"], built["handled"], built["lacks"], built["live"])


def test_poison_stops_its_projection_and_says_all_about_it(views: Path) -> None:
    bad = fill(b"1", b"x", b"3")[1]
    done = projections("run", "--until-idle", app="both")
    assert 3 == done.exit_code
    for word in ("sums@v1", "sums@v2", str(bad.id), "a-1", "version 1", "position 2", "ValueError", "'x'"):
        assert word in done.stderr, done.stderr
    assert {"sums@v1": "stopped", "sums@v2": "stopped", "seen@v1": "ok"} == {line.split()[0]: line.split()[-1] for line in done.stdout.splitlines()[1:]}
    assert (b"2", b"a-1") == (row("sums"), row("seen", "000000003"))


@pytest.mark.parametrize("words", [("rebuild", "sums"), ("rebuild", "sums", "--in-place"), ("swap", "sums")])
def test_poison_ends_a_rebuild_and_a_swap_without_success(views: Path, words: tuple[str, ...]) -> None:
    bad = fill(b"1", b"x", b"3")[1]
    done = projections(*words, app="second")
    assert (3, "") == (done.exit_code, done.stdout)
    assert str(bad.id) in done.stderr


def test_a_view_that_lacks_parked_events_is_no_success_until_they_are_handled(views: Path) -> None:
    fill(b"1", b"2", b"3")
    projections("run", "--until-idle", app="first")
    bad = fill(b"x")[3]
    built = projections("rebuild", "sums", app="parking")
    assert (1, True) == (built.exit_code, "It lacks 1 parked events" in built.stdout)
    assert [1] == [projections("rebuild", "sums", app="parking").exit_code]
    assert 1 == projections("run", "--until-idle", app="parking").exit_code
    (listed,) = told("parked", "sums")
    assert ("sums@v2", "a-1", 3, 4, str(bad.id)) == tuple(listed[key] for key in ("view", "stream", "version", "position", "id"))
    table = projections("parked")
    assert (0, True) == (table.exit_code, str(bad.id) in table.stdout and "ValueError: invalid literal" in table.stdout)
    assert [] == told("parked", "sums", "--version", "1")
    refused = projections("swap", "sums", app="parking")
    assert (3, True) == (refused.exit_code, "--retry" in refused.stderr)
    again = projections("parked", "sums", "--retry", app="parking")
    assert (1, "sums@v2  0 handled, 1 parked still\n") == (again.exit_code, again.stdout)
    assert [{"view": "sums@v2", "handled": 1, "parked": 0}] == told("parked", "sums", "--retry", app="lenient")
    assert "No parked events.\n" == projections("parked").stdout
    assert 0 == projections("swap", "sums", app="lenient").exit_code


def test_a_swap_may_be_told_that_events_are_lacking(views: Path) -> None:
    fill(b"1", b"x")
    projections("rebuild", "sums", app="parking")
    assert 0 == projections("swap", "sums", "--lacking", app="parking").exit_code


def test_a_rebuild_killed_half_way_is_carried_on(views: Path) -> None:
    fill(*(str(number).encode() for number in range(100)))
    projections("run", "--until-idle", app="first")
    killed = child("projections", "rebuild", "sums", "--app", "views:second", "--batch", "10", FATAL="55")
    assert (-signal.SIGKILL, "") == (killed.returncode, killed.stdout)
    assert (b"4950", 50) == (row("sums"), told("list")[1]["position"])
    (built,) = told("rebuild", "sums", app="second")
    assert (50, 100, b"9900") == (built["handled"], built["position"], row("sums@v2"))
    assert 100 == told("rebuild", "sums", "--restart", app="second")[0]["handled"]
    assert b"9900" == row("sums@v2")


def test_without_its_code_a_version_is_swapped_in_when_it_is_level(views: Path) -> None:
    fill(b"1")
    projections("run", "--until-idle", app="first")
    projections("run", "--until-idle", app="both")
    assert 2 == projections("swap", "sums").exit_code
    assert 0 == projections("swap", "sums", "--version", "2").exit_code
    already = projections("swap", "sums", "--version", "2")
    assert (0, "sums@v2 is live already, at position 1\n") == (already.exit_code, already.stdout)
    fill(b"2")
    projections("run", "--until-idle", app="second")
    behind = projections("swap", "sums", "--version", "1")
    assert (3, True) == (behind.exit_code, "sums@v1 is at position 1, behind the live view sums@v2 at 2" in behind.stderr)
    assert 3 == projections("swap", "sums", "--version", "3").exit_code


def test_two_versions_are_compared(views: Path) -> None:
    fill(b"1")
    fill(b"0", stream="a-2")
    assert 3 == projections("compare", "sums").exit_code
    projections("run", "--until-idle", app="first")
    projections("run", "--until-idle", app="both")
    done = projections("compare", "sums")
    assert (1, True) == (done.exit_code, "sums@v1 at 2 and sums@v2 at 2 differ: rows of both 1" in done.stdout), done.stdout
    assert ["a-1", "1", "2"] == done.stdout.splitlines()[-1].split()
    (same,) = told("compare", "sums", "1", "1")
    assert (True, 2) == (same["equal"], same["same"])
    fill(b"0", stream="a-2")
    projections("run", "--until-idle", app="second")
    assert "not seen the same events" in projections("compare", "sums", "1", "2").stderr


def test_lag_is_told_and_may_be_too_much(views: Path) -> None:
    fill(b"1")
    projections("run", "--until-idle", app="first")
    fill(b"2", b"3")
    assert [2] == [each["events"] for each in told("lag")]
    assert [0, 0, 1] == [projections("lag", *words).exit_code for words in ((), ("--most", "2"), ("--most", "1"))]
    assert 3 == projections("lag", "nobody").exit_code
    log = open_log("sqlite:///eventlog.db")
    log.checkpoints.save("sums@v1", 50)
    log.close()
    assert (1, "ahead of the log") == (projections("lag").exit_code, told("list")[0]["state"])
    assert (3, True) == ((ahead := projections("run", "--until-idle", app="first")).exit_code, "--in-place" in ahead.stderr)


@pytest.mark.parametrize(
    ("words", "app", "said"),
    [
        (("rebuild", "sums"), "", "This needs the app"),
        (("rebuild", "nobody"), "both", "declares no projection nobody; it has: seen@v1, sums@v1, sums@v2"),
        (("rebuild", "sums", "--version", "7"), "both", "declares no projection sums@v7"),
        (("run", "--until-idle"), "bare", "declares no projections"),
        (("run", "nobody"), "both", "declares no projection nobody"),
        (("run",), "total", "nothing that declares projections but of type function"),
        (("run",), "total", "It has: app, bare, both, first, lenient, parking, second."),
        (("parked", "--retry"), "both", "Which projection?"),
        (("drop", "sums", "0"), "", "0 is not in the range"),
    ],
)
def test_what_cannot_be_is_a_usage_error(views: Path, words: tuple[str, ...], app: str, said: str) -> None:
    done = projections(*words, app=app)
    assert (2, True) == (done.exit_code, said in done.output), done.output


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_run_keeps_up_until_it_is_stopped(views: Path, number: int, code: int) -> None:
    fill(b"1")
    with begin("projections", "run", "sums", "--app", "views:first") as running:
        assert running.stderr is not None and running.stdout is not None
        assert "keeping sums@v1 up to date" in running.stderr.readline()
        eventually(lambda: row("sums") == b"1")
        fill(b"2")
        eventually(lambda: row("sums") == b"3")
        running.send_signal(number)
        assert code == running.wait(20)
        assert "sums@v1" in running.stdout.read()


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 3)])
def test_until_idle_is_no_success_when_it_is_stopped_before(views: Path, number: int, code: int) -> None:
    fill(*(b"1" for _ in range(2_000)))
    (views / "slow.py").write_text(SLOW)
    with begin("projections", "run", "--until-idle", "--batch", "10", "--app", "slow:views") as running:
        assert running.stderr is not None
        eventually(lambda: row("slow") is not None)
        running.send_signal(number)
        assert code == running.wait(20)
        assert "stopped before every view was where the log is" in running.stderr.read()
    (standing,) = told("list")
    assert 0 < standing["position"] < 2_000


def test_looking_writes_nothing(views: Path) -> None:
    fill(b"1", b"x")
    projections("run", "--until-idle", app="both")
    projections("rebuild", "sums", app="parking")
    log = open_log("sqlite:///eventlog.db")
    log.close()
    before = (views / "eventlog.db").read_bytes()
    for words in (("list",), ("lag",), ("parked",), ("compare", "sums"), ("list", "--app", "views:both")):
        assert projections(*words).exit_code in (0, 1)
    assert before == (views / "eventlog.db").read_bytes()


def test_lines_tell_how_far_it_is_where_nobody_watches(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with showing.shown("sums@v2", 100, 300) as update:
        for passed, progress in ((1, Progress(150, 50)), (2, Progress(200, 100)), (4, Progress(250, 149, 1)), (7, Progress(300, 199, 1))):
            now = 100.0 + passed
            update(progress)
    assert ["sums@v2  50%  100 events", "sums@v2  100%  199 events · 1 parked"] == capsys.readouterr().err.splitlines()


def test_a_bar_is_drawn_where_somebody_watches(views: Path) -> None:
    fill(*(b"1" for _ in range(3_000)))
    reader, writer = pty.openpty()
    words = [*PROGRAM, "projections", "rebuild", "sums", "--app", "views:second", "--batch", "100"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=writer, env={**os.environ, "TERM": "xterm"}) as running:
        os.close(writer)
        shown = read_to_the_end(lambda: os.read(reader, 65_536))
        assert 0 == running.wait(30)
    os.close(reader)
    assert b"sums@v2" in shown and b"100%" in shown


def read_to_the_end(read: Callable[[], bytes]) -> bytes:
    """Everything that a terminal shows; its end is an error on Linux."""
    found = b""
    while True:
        try:
            part = read()
        except OSError:
            return found
        if not part:
            return found
        found += part
