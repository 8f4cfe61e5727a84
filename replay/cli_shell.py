"""``eventlog shell``: opens the log for reading, loads the app, finds a front end."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import CouldNot, app_option, complete_streams
from .sources import reading_source, source_option

if TYPE_CHECKING:
    from ..eventlog.log import EventLog
    from .shell.session import Session

_FRONTS: Final = {"ptpython": "front_ptpython", "ipython": "front_ipython", "plain": "front_plain"}


@click.command()
@click.argument("stream", metavar="[STREAM]", required=False, shell_complete=complete_streams)
@click.option("--ptpython", "front", flag_value="ptpython", help="On ptpython.  [default, where it is installed]")
@click.option("--ipython", "front", flag_value="ipython", help="On IPython.")
@click.option("--plain", "front", flag_value="plain", help="On nothing: Python's own line editing.")
@click.option("--no-python", is_flag=True, help="Take commands only: neither Python nor code from files.")
@source_option
@app_option
def shell(stream: str | None, front: str | None, no_python: bool, url: str, app: str | None) -> int:
    """Walk a history: forward, back, until something holds; look, ask why, run turns again.

    \b
    eventlog shell accounts-acct-42 --app refunds:app
    eventlog shell case-7.bundle                      a bundle needs no database
    echo 'back until st.open_orders' | eventlog shell accounts-acct-42 --app refunds:app

    Without STREAM it is the one looked at last. Its commands only read; `help` in it lists what can be typed. Python that
    you type runs with your rights, unless --no-python refuses it. A better line editor: pip install 'intentlog[shell]'.
    """
    from ..agents.loading import load_app
    from .shell.looking import greeting
    from .shell.printing import Screen
    from .shell.remembering import Memory, state_folder
    from .shell.session import Session
    from .shell.table import COMMANDS
    from .sources import bundle_path

    if stream and (path := bundle_path(stream)) and Path(path).is_file():
        url, stream = stream, None
    known = load_app(app) if app else None
    with reading_source(url) as log:
        memory = Memory.of(state_folder(os.environ), url, Path.cwd())
        screen = Screen()
        session = Session(log, url, known, app or "", COMMANDS, not no_python, screen.width, bool(os.environ.get("EVENTLOG_DEBUG")), memory.remember)
        _begin(session, log, stream or memory.last_stream(), named=bool(stream))
        screen.show(greeting(session))
        return int(_front(front).run(session, screen, memory))


def _begin(session: Session, log: EventLog, stream: str, *, named: bool) -> None:
    """Open the stream named, the one remembered if it is still there, or the only one there is."""
    if named or (stream and log.head(stream) >= 0):
        session.open(stream)
        return
    found = session.streams()
    if len(found) == 1:
        session.open(found[0])


def _front(wanted: str | None) -> Any:
    """The module of the front end; the best that is installed unless one is asked for."""
    if wanted is None:
        order = ("ptpython", "ipython", "plain") if sys.stdin.isatty() and sys.stdout.isatty() else ("plain",)
    else:
        order = (wanted,)
    for name in order:
        try:
            return importlib.import_module(f".shell.{_FRONTS[name]}", __package__)
        except ModuleNotFoundError as problem:
            if wanted is not None or (problem.name or "").startswith("intentlog"):
                raise CouldNot(f"--{name} needs {problem.name}, which is not installed here. Install it with: pip install 'intentlog[shell]'") from problem
    raise CouldNot("no front end can be loaded; install intentlog again: pip install -e .")
