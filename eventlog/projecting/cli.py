"""``eventlog projections``: the group; its commands are in the modules ``cli_…`` beside it."""

from __future__ import annotations

import click

from .cli_changing import drop, rebuild, swap
from .cli_looking import compare, lag, list_all
from .cli_parked import parked
from .cli_running import run


@click.group()
def projections() -> None:
    """Views built from the log: list, run, rebuild beside the live one, swap.

    Each version of a projection has a view of its own (open-orders@v2); readers of its name see the one that is live.
    """


for command in (list_all, lag, run, rebuild, compare, swap, drop, parked):
    projections.add_command(command)
