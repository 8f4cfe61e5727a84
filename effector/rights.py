"""What an effector's role in a PostgreSQL log must be allowed, looked at before it serves: without it, it would only begin again and again."""

from __future__ import annotations

from typing import Final

from ..eventlog.console import CouldNot
from ..eventlog.log import EventLog

_READ: Final = ("streams", "events", "blobs", "schedule", "checkpoints")
"""Tables that it reads."""


def refuse_without_rights(log: EventLog, url: str) -> None:
    """Raises ``CouldNot`` with every right that is missing and the way to them, and ``LogUnavailable``.

    Only a log on a server has roles; what an SQLite file lets somebody do is seen when he does it.
    """
    if not log.served:
        return
    lacking, role = _lacking(url)
    if not lacking:
        return
    tables = "; ".join(f"{', '.join(rights)} on {table}" for table, rights in lacking.items())
    raise CouldNot(
        f"The role {role} may not do in {log.url} what an effector does. It lacks: {tables}. "
        f"As the owner of the schema: eventlog grants --effector {role} --log … | psql -1 …"
    )


def _lacking(url: str) -> tuple[dict[str, list[str]], str]:
    """By table, what is missing; and whose it is."""
    import psycopg

    from ..eventlog.postgres.address import parse_address
    from ..eventlog.postgres.faults import translated
    from ..eventlog.postgres.grants import WRITES
    from ..eventlog.postgres.pooling import connect

    address = parse_address(url)
    needed = [(table, "SELECT") for table in _READ]
    needed += [(table, right) for table, rights in WRITES["effector"].items() for right in rights.split(", ")]
    lacking: dict[str, list[str]] = {}
    try:
        with connect(address, read_only=True) as connection:
            (role,) = connection.execute("SELECT current_user").fetchone() or ("",)
            for table, right in needed:
                found = connection.execute("SELECT has_table_privilege($1, $2)", (f"{address.schema}.{table}", right)).fetchone()
                if found != (True,):
                    lacking.setdefault(table, []).append(right)
    except psycopg.Error as problem:
        raise translated(problem, address) from problem
    return lacking, role
