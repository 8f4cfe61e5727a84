"""The command ``eventlog``: one group whose sub-commands every room brings through the entry point group ``intentlog.commands``.

A sub-command's module is imported when it is asked for. The group knows no other room, so nothing imports upward.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, distributions, version
from typing import Any, Final

import click

from .console import Commands, CouldNot
from .ending import at_once

GROUP: Final = "intentlog.commands"

EPILOG: Final = """\b
Exit codes: 0 ok, 1 found a difference, 2 usage, 3 could not, 130 interrupted.
The log: --log URL or EVENTLOG_URL. The app: --app module:attribute or EVENTLOG_APP.
Completion of commands and stream names:
  bash  eval "$(_EVENTLOG_COMPLETE=bash_source eventlog)"
  zsh   eval "$(_EVENTLOG_COMPLETE=zsh_source eventlog)"
"""


class RoomCommands(Commands):
    """Finds sub-commands by name among the installed entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name there is."""
        return sorted(found())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now."""
        point = found().get(cmd_name)
        if point is None:
            return None
        try:
            command = point.load()
        except (ImportError, AttributeError) as problem:
            raise CouldNot(f"the command {cmd_name!r} cannot be loaded from {point.value}: {problem}. Install intentlog again: pip install -e .") from problem
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line a command; one that cannot be loaded does not hide the others."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._in_short(ctx, name)) for name in self.list_commands(ctx)])

    def _in_short(self, ctx: click.Context, name: str) -> str:
        try:
            command = self.get_command(ctx, name)
        except CouldNot as problem:
            return str(problem)
        return command.get_short_help_str(80) if command is not None else ""


def found() -> dict[str, EntryPoint]:
    """Every sub-command there is, by name.

    Not ``entry_points(group=…)``: that takes the first distribution of a name on the path, and in a checkout a stale
    ``*.egg-info`` folder stands there before what is installed. Here the last one has its say.
    """
    return {point.name: point for each in distributions() for point in each.entry_points.select(group=GROUP)}


@click.group(cls=RoomCommands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, envvar="EVENTLOG_DEBUG", help="Show the traceback of an error.")
@click.version_option(version("intentlog"), prog_name="eventlog")
def group(debug: bool) -> None:
    """Agents whose every turn is recorded: run them, send to them, look at what they did."""


def main(**extra: Any) -> None:
    """The console script."""
    try:
        group.main(prog_name="eventlog", **extra)
    except SystemExit as stop:
        at_once(stop.code if isinstance(stop.code, int) else 0)
        raise
