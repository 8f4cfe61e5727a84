"""``eventlog projections run``: every view kept up to date, until somebody says stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from ..console import COULD_NOT, FOUND, INTERRUPTED, OK, answering, app_option, json_option, log_option, masked, writing
from ..printing import Column, note, one_line, print_json, table
from .choosing import chosen, declared_in

if TYPE_CHECKING:
    from .declared import Projection, Projections
    from .keeping_up import Ended

_SAME_AGAIN: Final = 10.0
"""Seconds until the same trouble is told again."""


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--until-idle", is_flag=True, help="End when every view is where the log is.")
@click.option("--poll-ms", metavar="N", type=click.IntRange(1, 60_000), default=50, show_default=True, help="How often to look for what others appended.")
@click.option("--batch", metavar="N", type=click.IntRange(1, 100_000), default=500, show_default=True, help="Events a transaction.")
@log_option
@app_option
@json_option
def run(names: tuple[str, ...], until_idle: bool, poll_ms: int, batch: int, url: str, app: str | None, as_json: bool) -> int:
    """Keep the app's views up to date.

    All of them unless some are named, until ^C. A projection that meets an event it cannot take stops, or parks it, as it
    is declared; the others go on. The exit code is 3 when one stopped, 1 when one lacks parked events.

    \b
    eventlog projections run --until-idle --app shop:app
    """
    from ..watching import telling
    from .keeping_up import run_all

    declared = declared_in(app)
    wanted = [each for each in declared if not names or each.name in names]
    _check_names(declared, names)
    with writing(url, create=False) as log, _stopping() as stop:
        if not until_idle:
            note(f"keeping {', '.join(each.view for each in wanted)} up to date on {masked(url)}; ^C stops")
        told = _Troubles()
        with telling(log):
            ended = run_all(log, wanted, stop=stop.is_set, codec=declared.codec, until_idle=until_idle, poll=poll_ms / 1000, batch=batch, trouble=told.tell)
        # ^C also ends a run whose store is gone, and its exit code depends on nothing that the store knows.
        lacking = set() if stop.code else {each.projection for each in log.views.parked()}
    with answering("Every view stands where its checkpoint says"):
        _sum_up(ended, as_json)
    if any(each.error is not None for each in ended):
        return COULD_NOT
    if stop.is_set() and until_idle:
        note("stopped before every view was where the log is")
        return stop.code or COULD_NOT
    if stop.code:
        return stop.code
    return FOUND if any(each.projection.view in lacking for each in ended) else OK


def _check_names(declared: Projections, names: tuple[str, ...]) -> None:
    if not len(declared):
        raise click.UsageError("The app declares no projections. Declare them: App(…, projections=[…]).")
    for name in names:
        chosen(declared, name, None)


class _Stop(threading.Event):
    """Set by a signal; ``code`` is what the command ends with then."""

    code = OK


@contextmanager
def _stopping() -> Iterator[_Stop]:
    """Heed ^C and SIGTERM while this lasts: the first ends what is being done in order, the second ends at once."""
    stop = _Stop()

    def heed(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.code = INTERRUPTED if number == signal.SIGINT else OK
        stop.set()

    if threading.current_thread() is not threading.main_thread():  # only there can signals be heeded
        yield stop
        return
    before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Troubles:
    """Tells what went wrong, each thing once in a while."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._guard = threading.Lock()

    def tell(self, projection: Projection, error: Exception) -> None:
        from ..errors import LogUnavailable

        text = masked(one_line(str(error) or type(error).__name__))
        if not isinstance(error, LogUnavailable):
            text = f"{projection.view}: {text}"
        # A store that is gone is one trouble, whichever views meet it and however the server puts it from moment to moment.
        same = type(error).__name__ if isinstance(error, LogUnavailable) else text
        with self._guard:
            if time.monotonic() - self._told.get(same, -_SAME_AGAIN) < _SAME_AGAIN:
                return
            self._told[same] = time.monotonic()
        note(text)


def _sum_up(ended: list[Ended], as_json: bool) -> None:
    if as_json:
        for each in ended:
            counts = {"position": each.progress.position, "handled": each.progress.handled, "parked": each.progress.parked}
            print_json({"view": each.projection.view, **counts, "error": None if each.error is None else str(each.error)})
        return
    columns = (Column("view", gives=True), Column("position", right=True), Column("handled", right=True), Column("parked", right=True), Column("ended"))
    rows = [
        (each.projection.view, each.progress.position, each.progress.handled, each.progress.parked, "stopped" if each.error is not None else "ok")
        for each in ended
    ]
    table(columns, rows)
