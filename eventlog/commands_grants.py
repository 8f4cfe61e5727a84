"""``eventlog grants``: prints SQL for whoever may grant. It needs no server, and changes nothing by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from .console import json_option, log_option
from .printing import print_json, say

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS: Final = {
    "worker": "A role that runs agents, or sends, signals and answers.",
    "effector": "A role that carries intents out.",
    "projector": "A role that builds views.",
    "reader": "A role that only looks.",
}


def _role_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for kind, text in reversed(_KINDS.items()):
        command = click.option(f"--{kind}", kind, metavar="ROLE", multiple=True, help=f"{text} May be given several times.")(command)
    return command


@click.command()
@_role_options
@log_option
@json_option
def grants(worker: tuple[str, ...], effector: tuple[str, ...], projector: tuple[str, ...], reader: tuple[str, ...], url: str, as_json: bool) -> None:
    """Print the least that roles need in a PostgreSQL log, as SQL.

    \b
    eventlog grants --worker app --effector hands --reader analysts --log postgresql://…/… | psql -1 …

    The roles must be there; run the SQL as the owner of the schema. What else a role was given in the schema is taken back. One role
    may be of several kinds, and `eventlog run` needs to be a worker and an effector. Repeat it after an upgrade that brings new tables.
    """
    named = {"worker": worker, "effector": effector, "projector": projector, "reader": reader}
    roles = [(kind, role) for kind in _KINDS for role in named[kind]]
    if not roles:
        raise click.UsageError("Name a role for at least one of " + ", ".join(f"--{kind}" for kind in _KINDS) + ".", click.get_current_context())
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        raise click.UsageError("Only a postgresql:// log has roles; a SQLite log is a file, whose permissions are the file system's.")
    from .postgres.address import parse_address
    from .postgres.grants import grants as made

    statements = made(parse_address(url).schema, roles)
    if as_json:
        print_json({"statements": statements})
    else:
        for each in statements:
            say(each)
