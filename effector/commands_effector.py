"""``eventlog effector``: its options; what it does is in ``replica``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
    from .replica import serve

    return serve(given, until_idle=until_idle, boundary=crash)
