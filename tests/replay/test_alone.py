"""Whoever looks back can write nothing, call nobody and carry nothing out: the database forbids it, the network is cut, the hands are gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from intentlog.eventlog.cli import found
from intentlog.eventlog.opening import open_log
from tests.cli.conftest import call
from tests.replay.world import World

STREAM = "orders-bob"
SHOP = """
from datetime import timedelta
from pathlib import Path
from intentlog.agents import Aggregate, App, ModelResponse, agent, applies, tool
from intentlog.eventlog import Projection, event

CALLED = Path("called.txt")

@event("order.noted")
class Noted:
    what: str

class Order(Aggregate):
    notes: tuple[str, ...] = ()

    @applies(Noted)
    def _(self, e: Noted) -> "Order":
        return self.evolve(notes=(*self.notes, e.what))

class Provider:
    provider, model = "example", "costly"
    async def complete(self, request, *, idempotency_key):
        with CALLED.open("a") as file:
            file.write("model ")
        return ModelResponse("yes", self.model)

@tool(side_effect=True, idempotent=True)
async def ship(what: str) -> str:
    with CALLED.open("a") as file:
        file.write("tool ")
    return what

@tool
def stock(what: str) -> int:
    with CALLED.open("a") as file:
        file.write("read ")
    return 7

@agent("orders", state=Order)
async def orders(ctx, what: str):
    await ctx.run_tool(stock, what=what)
    answer = await ctx.call_model(f"Ship {what}?")
    ctx.emit(Noted(answer.text))
    await ctx.perform(ship, what=what)
    return await ctx.signal("go")

def counting(view, event, value):
    view.put("n", str(int(view.get("n") or b"0") + 1).encode())

app = App(agents=[orders], models=Provider(), projections=[Projection("counts", counting)])
"""
APP = ("--app", "shop:app")
#: Command → words behind it, what is typed, and the exit code it ends with.
READING: dict[str, tuple[tuple[str, ...], str, int]] = {
    "streams": ((), "", 0),
    "tail": ((), "", 0),
    "stats": (("--events",), "", 0),
    "dead-letters": (("list",), "", 0),
    "approvals": (("list",), "", 0),
    "intents": (("list",), "", 0),
    "projections": (("lag",), "", 0),
    "show": ((STREAM, *APP), "", 0),
    "state": ((STREAM, *APP), "", 0),
    "diff": ((STREAM, "0", "8", *APP), "", 1),
    "why": ((STREAM, "notes", *APP), "", 0),
    "bisect": ((STREAM, "len(st.notes) > 0", *APP), "", 1),
    "replay": (("--all", *APP), "", 0),
    "preflight": (APP, "", 0),
    "trace": (("order-bob",), "", 0),
    "search": (("tea",), "", 0),
    "verify": (("--chain", *APP), "", 0),
    "raw": ((STREAM, "3"), "", 0),
    "bundle": ((STREAM, "-o", "{answers}/bob.bundle"), "", 0),
    "shell": ((STREAM, "--plain", *APP), "back\nnext\nst\nwhy notes\nquit\n", 0),
}
WRITING = {"fork", "merge"}
"""Of the replay room: they copy or bring back, and say so."""


@pytest.fixture
def shop(shared_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A folder with the app, and the URL of its log, in which a run is suspended and a view was built."""
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    url = shared_url
    World(url).log.close()
    for words in (
        ("send", "orders", "bob", '"tea"', "--id", "order-bob"),
        ("run", "shop:app", "--until-idle"),
        ("projections", "rebuild", "counts", *APP),
        ("projections", "swap", "counts", *APP),
    ):
        done = subprocess.run([_eventlog(), *words, "--log", url], capture_output=True, text=True, check=False)
        assert 0 == done.returncode, (words, done.stderr)
    assert "read model tool " == (tmp_path / "called.txt").read_text()
    return tmp_path, url


def _eventlog() -> str:
    return str(Path(sys.executable).parent / "eventlog")


@pytest.fixture
def reader(shop: tuple[Path, str]) -> Iterator[str]:
    """The URL as a role that may only read, where the store has roles."""
    url = shop[1]
    if not url.startswith("postgresql"):
        yield url
        return
    name = f"reader_{os.urandom(4).hex()}"
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        connection.execute(call("grants", "--reader", name, "--log", url).stdout.encode())
        user = connection.info.user
        yield url.replace(f"//{user}@", f"//{name}@")
        connection.execute(f"DROP OWNED BY {name}".encode())
        connection.execute(f"DROP ROLE {name}".encode())


def everything(url: str) -> Any:
    """All that a log holds beside its events, too."""
    with closing(open_log(url, create=False, read_only=True)) as log:
        wakes = log.schedule.wakes("turns", list(log.streams()))
        return list(log.read_all()), log.checkpoints.all(), log.views.pointed(), wakes, log.snapshots.load(list(log.streams())), log.schedule.owners()


def test_every_reading_command_works_alone_and_leaves_everything_as_it_was(shop, reader, tmp_path):
    folder, url = shop
    answers = folder / "answers"
    answers.mkdir()
    before, files = everything(url), sorted(folder.iterdir())
    names = [name for name in READING if name in found()]
    lines = [([name, *(word.format(answers=answers) for word in READING[name][0]), "--log", reader], READING[name][1]) for name in names]
    (answers / "commands.json").write_text(json.dumps(lines))
    program = [sys.executable, str(Path(__file__).with_name("alone.py")), str(answers / "commands.json")]
    cut_off = [] if url.startswith("postgresql") else _without_network()
    settings = {**os.environ, "ANSWERS": str(answers), "PYTHONPATH": str(folder), "XDG_STATE_HOME": str(answers), "HOME": str(answers)}
    done = subprocess.run([*cut_off, *program], cwd=folder, env=settings, capture_output=True, text=True, check=False, timeout=110)
    assert 0 == done.returncode, done.stderr
    said = json.loads(done.stdout)
    codes = dict(zip(names, said["codes"], strict=True))
    assert ({name: READING[name][2] for name in names}, []) == (codes, said["attempts"]), said["outputs"][-1]
    assert before == everything(url)
    assert "read model tool " == (folder / "called.txt").read_text()
    assert [file.name for file in files] == [file.name for file in sorted(folder.iterdir()) if not file.name.endswith(("-wal", "-shm"))]


def _without_network() -> list[str]:
    """In a network of its own, which has none; where the kernel lets nobody make one, the watched process must do."""
    command = ["unshare", "--map-root-user", "--net"]
    may = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if may else []


def test_every_command_of_the_room_is_known_to_read_or_to_write():
    of_the_room = {name for name, point in found().items() if point.value.startswith("intentlog.replay.")}
    assert set() == of_the_room - set(READING) - WRITING


def test_the_watch_would_notice(tmp_path):
    """What the test above relies on."""
    program = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); os.environ['ANSWERS'] = '/nowhere'; import alone, socket; sys.addaudithook(alone.watch)\n"
        "sys.meta_path.insert(0, alone.NoHands())\n"
        "def tried(do):\n    try:\n        do()\n    except (PermissionError, ModuleNotFoundError):\n        return True\n    return False\n"
        "print(tried(lambda: open('x', 'w')), tried(lambda: socket.create_connection(('127.0.0.1', 9))), tried(lambda: os.system('true')), "
        "tried(lambda: __import__('intentlog.effector')), tried(lambda: open(os.devnull)), len(alone.ATTEMPTS))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "True True True True False 4" == done.stdout.strip()
