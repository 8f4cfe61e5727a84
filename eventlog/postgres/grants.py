"""The least that each kind of user needs: what a database administrator grants, and nothing that would be run unseen.

A schema belongs to the role that ran ``eventlog init``; that role alone changes tables. Everybody else reads all of them, and
writes what is listed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import InvalidName

_APPENDS: Final = {"streams": "INSERT", "events": "INSERT", "blobs": "INSERT", "schedule": "INSERT, UPDATE"}

#: kind of user → table → what it may do there beside reading.
WRITES: Final[Mapping[str, Mapping[str, str]]] = {
    # Runs agents: `eventlog worker`, `send`, `signal`, `approvals`, `dead-letters`, whatever appends.
    "worker": {**_APPENDS, "snapshots": "INSERT, UPDATE"},
    # Carries intents out: `eventlog effector`. It begins no stream.
    "effector": {**{table: rights for table, rights in _APPENDS.items() if table != "streams"}, "checkpoints": "INSERT, UPDATE"},
    # Builds views: `eventlog projections`. It appends nothing.
    "projector": dict.fromkeys(("checkpoints", "views", "view_rows", "pointed", "parked"), "INSERT, UPDATE, DELETE"),
    # Looks: every other command, the views, a report. It writes nothing.
    "reader": {},
}


def grants(schema: str, roles: Sequence[tuple[str, str]]) -> list[str]:
    """Statements that give each ``(kind, role)`` what it needs in ``schema``, and take back what else it was given there.

    One role may be of several kinds. Raises ``InvalidName`` for a name that PostgreSQL would not keep whole, ``KeyError`` for an unknown kind.
    """
    given: dict[str, list[str]] = {}
    for kind, role in roles:
        given.setdefault(_quoted(role), []).append(kind)
    found: list[str] = []
    for role, kinds in given.items():
        found += [
            f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role};",
            f"REVOKE CREATE ON SCHEMA {schema} FROM {role};",
            f"GRANT USAGE ON SCHEMA {schema} TO {role};",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role};",
        ]
        rights: dict[str, list[str]] = {}
        for kind in kinds:
            for table, added in WRITES[kind].items():
                rights.setdefault(table, []).extend(right for right in added.split(", ") if right not in rights.get(table, ()))
        found += [f"GRANT {', '.join(rights[table])} ON {schema}.{table} TO {role};" for table in rights]
    return found


def _quoted(role: str) -> str:
    """``role`` as SQL text."""
    if not role or "\0" in role or len(role.encode("utf-8", "surrogatepass")) > 63 or not role.isprintable():
        raise InvalidName(f"The role {role!r:.80} is none: a role has a name of 1 to 63 bytes, all of them printable.")
    return '"' + role.replace('"', '""') + '"'
