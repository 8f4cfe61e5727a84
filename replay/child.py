"""A process that looks back on streams for another: told by lines of JSON on stdin, answering by lines of JSON.

The code under test is imported here and nowhere else, so that one process never holds two revisions of it. What the
app prints goes to stderr, for stdout is the answers'.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import IO, Any

import attrs
import msgspec

from ..agents.app import App
from ..agents.loading import load_app
from ..eventlog.console import COULD_NOT, USAGE, exit_code_of, explain
from ..eventlog.log import EventLog
from .against import folded
from .aggregates import categories
from .allowing import Allowance
from .bisect import holding
from .errors import CodeUnusable
from .preflight import preflight_all
from .projected import replay_projections
from .replays import replay_all, replayable, runs
from .sources import open_source

PROGRAM = "from intentlog.replay.child import main; main()"


@attrs.frozen
class Order:
    """What a child is told first."""

    #: ``replay``, ``preflight``, ``projections``, ``state`` or ``condition``.
    verb: str
    source: str
    app: str
    #: Folders in which modules are looked for before anywhere else.
    paths: tuple[str, ...] = ()
    #: A checkout whose modules must not be mixed with those of ``paths``; empty for none.
    checkout: str = ""
    allowances: tuple[Allowance, ...] = ()
    #: Streams that no agent's code wrote are passed over.
    only_runs: bool = False
    #: What the verb ``condition`` asks of each stream's state.
    condition: str = ""
    #: Show the traceback when the app cannot be loaded.
    debug: bool = False


def main() -> None:
    """The process."""
    asked, answers = _channels()

    def answer(**said: Any) -> None:
        try:
            answers.write(json.dumps(said).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:
            os._exit(COULD_NOT)  # whoever asked is gone, and has nothing to be told

    first = asked.readline()
    if not first:
        return
    order = msgspec.convert(json.loads(first), Order)
    try:
        app = _app(order)
        log = open_source(order.source)
    except Exception as problem:  # whatever it is, the parent tells it as its own
        if order.debug:
            traceback.print_exception(problem)
        answer(failed=explain(problem), usage=exit_code_of(problem) == USAGE)
        return
    try:
        answer(beside=_beside(order), agents=categories(app) if order.verb == "replay" else sorted(app.agents), projections=bool(app.projections.names()))
        for found in _look(order, log, app, _streams(order, log, app, asked, lambda: answer(skipped=True))):
            answer(found=msgspec.to_builtins(found))
    except Exception as problem:
        answer(failed=explain(problem), usage=False)
    finally:
        log.close()


def _channels() -> tuple[IO[bytes], IO[bytes]]:
    """stdin and stdout as they were; the app's own are /dev/null and stderr. ^C is for the parent, who ends us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # blocked by the parent until here
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return asked, answers


def _streams(order: Order, log: EventLog, app: App, asked: IO[bytes], skipped: Callable[[], None]) -> Iterator[str]:
    wanted = replayable if order.verb == "replay" else runs
    for line in asked:
        stream = json.loads(line)
        if order.only_runs and not any(True for _ in wanted(log, app, [stream])):
            skipped()
        else:
            yield stream


def _look(order: Order, log: EventLog, app: App, streams: Iterator[str]) -> Iterator[Any]:
    if order.verb == "projections":
        return (list(replay_projections(log, app)) for _ in streams)
    if order.verb == "condition":
        return (holding(log, app, stream, order.condition) for stream in streams)
    if order.verb == "state":
        return (folded(log, app, *asked) for asked in streams)  # each is (stream, version)
    if order.verb == "preflight":
        return preflight_all(log, app, streams)
    return replay_all(log, app, streams, allowances=order.allowances)


def _app(order: Order) -> App:
    here = os.getcwd()  # named, or loading the app would put it before what was asked for
    around = [] if order.checkout else [here]  # of a revision this folder is there, too, and what it lacks is not to be had from the checkout
    sys.path[:] = [*order.paths, *around, *(each for each in sys.path if each not in ("", here, *order.paths))]
    sys.dont_write_bytecode = True
    app = load_app(order.app, here=not order.checkout)
    name = order.app.partition(":")[0]
    place = _place(sys.modules[name])
    inside = name.replace(".", os.sep)
    if order.paths and not any(place == os.path.realpath(os.path.join(each, inside + end)) for each in order.paths for end in (".py", f"{os.sep}__init__.py")):
        raise CodeUnusable(
            f"--app {order.app}: its module was found at {place or 'no file'}, not in the code to replay with ({order.paths[0]}). "
            "Give --code the folder that the module is found from."
        )
    return app


def _beside(order: Order) -> list[str]:
    """Modules that came from the checkout itself although a revision of it was asked for."""
    if not order.checkout:
        return []
    inside = os.path.realpath(order.checkout) + os.sep
    libraries = {os.path.realpath(each) + os.sep for each in sys.path if os.path.basename(each) in ("site-packages", "dist-packages")}
    found = []
    for name, module in sorted(sys.modules.items()):
        place = _place(module)
        if place.startswith(inside) and not place.startswith(tuple(libraries)) and not name.startswith("intentlog"):
            found.append(name)
    return found[:20]


def _place(module: Any) -> str:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if file else ""  # of no file would be the current folder
