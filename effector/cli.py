"""``eventlog run``, ``worker`` and ``demo``: their options; what they do is in ``serving`` and ``demo``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..agents.options import keys_option
from ..eventlog.console import COULD_NOT, OK, app_argument, json_option, log_option

if TYPE_CHECKING:
    from .crash import Boundary


def _crash(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Boundary | None:
    if not value:
        return None
    from .crash import crash_at

    try:
        return crash_at(value)
    except ValueError as problem:
        raise click.BadParameter(str(problem), ctx, parameter) from problem


crash_option = click.option("--crash-at", "crash", hidden=True, envvar="EVENTLOG_CRASH_AT", callback=_crash, help="See effector/crash.py.")
"""For every command that serves."""


def _serving(command: Any) -> Any:
    """The options that ``run`` and ``worker`` share."""
    for option in (
        crash_option,
        json_option,
        click.option(
            "--verify-outcomes",
            type=click.Choice(["off", "permissive", "require"]),
            default="off",
            envvar="EVENTLOG_VERIFY_OUTCOMES",
            show_envvar=True,
            help="Before a turn: permissive refuses outcomes and answers with wrong signatures, require unsigned ones too.  [default: off]",
        ),
        keys_option("Sign every intent with these keys:"),
        click.option(
            "--poll-ms", metavar="N", type=click.IntRange(1, 60_000), default=50, show_default=True, help="How often to look for what others appended."
        ),
        click.option(
            "--lease-ms", metavar="N", type=click.IntRange(100, 86_400_000), default=30_000, show_default=True, help="How long a silent process keeps its keys."
        ),
        click.option("--concurrency", metavar="N", type=click.IntRange(1, 100_000), default=64, show_default=True, help="Keys in flight."),
        click.option("--until-idle", is_flag=True, help="End when nothing is due, in flight or without outcome."),
        log_option,
        app_argument,
    ):
        command = option(command)
    return command


def _check_keys(options: dict[str, Any], **flags: str) -> None:
    for name, flag in flags.items():
        if options[name] != "off" and options["keys"] is None:
            raise click.UsageError(f"{flag} {options[name]} needs keys to verify with: --signing-keys env:NAME or file:/path")


@click.command()
@_serving
@click.option("--input", "path", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Inputs to take in: JSON lines, plain or gzip.")
@click.option(
    "--verify-intents",
    "verify",
    type=click.Choice(["off", "permissive", "require"]),
    default="off",
    envvar="EVENTLOG_VERIFY_INTENTS",
    show_envvar=True,
    help="Before an effect: permissive refuses wrong signatures, require missing ones too.  [default: off]",
)
def run(**options: Any) -> int:
    """Run an app: worker and effector in one process.

    APP is module:attribute, found from the current folder. The log is made when it is not there. Without --until-idle it
    serves until ^C; once stops it in an orderly way, twice at once.

    A line of FILE is {"agent": …, "key": …, "type": …, "payload": …, "id": …}, or whatever the app's intake takes. A line
    that is refused is told on stderr and the others go on; then the exit code is 3.

    \b
    eventlog run shop:app --until-idle
    """
    _check_keys(options, verify="--verify-intents", verify_outcomes="--verify-outcomes")
    from .starting import ending_before_it_serves

    with ending_before_it_serves(COULD_NOT if options["until_idle"] or options["path"] else OK):
        from .serving import Serving

        return Serving(with_effector=True, create=True, **options).run()


@click.command()
@_serving
def worker(**options: Any) -> int:
    """Run an app's agents without carrying out their effects.

    Intents wait in the log for an effector (`eventlog run` has one).

    \b
    eventlog worker shop:app --until-idle
    """
    _check_keys(options, verify_outcomes="--verify-outcomes")
    from .starting import ending_before_it_serves

    with ending_before_it_serves(COULD_NOT if options["until_idle"] else OK):
        from .serving import Serving

        return Serving(with_effector=False, create=False, path=None, **options).run()


@click.command()
@click.option("--keep", metavar="FOLDER", type=click.Path(file_okay=False), help="Tell it in this folder and leave it there.")
def demo(keep: str | None) -> int:
    """See an agent killed after it paid, come back, and not pay twice.

    Everything is real and local: child processes, SIGKILL, an SQLite file, a model and a bank on a loopback port.

    \b
    eventlog demo --keep ./demo
    """
    from .demo.story import tell

    return tell(keep)
