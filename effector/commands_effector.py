"""``eventlog effector``: its options; what it does is in ``replica``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ..eventlog.console import COULD_NOT, OK, exit_code_of, explain
from .cli import crash_option
from .settings import options

if TYPE_CHECKING:
    from .crash import Boundary


@click.command()
@options
@crash_option
@click.option("--until-idle", is_flag=True, hidden=True, envvar="EFFECTOR_UNTIL_IDLE", help="End when every intent has its outcome.")
def effector(crash: Boundary | None, until_idle: bool, **given: str | None) -> int:
    """Carry out intents in a process of its own, one of any number of replicas.

    It needs the tools alone: no agent runs here. Every option also reads an environment variable. It serves until SIGTERM or
    ^C: once lets running tools end, twice stops at once. Health and metrics are served over HTTP, log lines go to stderr.

    \b
    eventlog effector --registry shop:app
    """
    from .ending import ending_without_threads
    from .starting import ending_before_it_serves

    code = OK

    def tell(threads: list[str]) -> None:
        from .logs import logger

        logger(replica=given.get("owner") or str(os.getpid())).warning("threads left", threads=threads[:20], count=len(threads))

    with ending_before_it_serves(OK), ending_without_threads(lambda: code, tell):
        try:
            from .replica import serve

            code = serve(given, until_idle=until_idle, boundary=crash)
            return code
        except Exception as problem:
            if not _is_a_line(problem):
                raise
            from .logs import logger

            logger(replica=given.get("owner") or str(os.getpid())).error("could not serve", error=type(problem).__name__, text=explain(problem))
            return COULD_NOT


def _is_a_line(problem: Exception) -> bool:
    """Whether an error is told as the lines of the log are: it ends the command with 3, and nobody looks at a terminal."""
    ended = isinstance(problem, click.exceptions.Exit | click.Abort | BrokenPipeError)
    return not ended and exit_code_of(problem) == COULD_NOT and not os.environ.get("EVENTLOG_DEBUG") and not sys.stderr.isatty()
