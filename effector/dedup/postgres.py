"""The PostgreSQL store: one table in a schema of its own, one statement a transition.

Each statement commits by itself. A claim first looks, so that waiting for an intent writes nothing; the insert behind it
is what decides between rivals. Needs psycopg (``pip install 'intentlog[postgres]'``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

from ...eventlog.clock import Micros
from . import rules
from .address import ServerAddress, masked, parse_server
from .checking import MARGIN, SWEEP, CheckedStore
from .errors import DedupSchemaError, StoreUnavailable, StoreUnfit
from .patience import Away, until_it_answers
from .postgres_connections import Connections
from .rules import Record
from .statements import sql
from .store import Busy, Claimed, Done, Free

T = TypeVar("T")
SCHEMA: Final = 1
"""The number in the table ``release`` of this release."""
_LOCK: Final = 0x69647570
"""Advisory lock under which the tables are made: ``CREATE … IF NOT EXISTS`` alone does not stand a race."""


class PostgresStore(CheckedStore):
    """A ``DedupStore`` in one PostgreSQL schema."""

    def __init__(self, url: str, address: ServerAddress, connections: Connections) -> None:
        super().__init__(url)
        self.schema = schema_name(address)
        self._patience, self._connections = address.patience, connections

    def _tried(self, doing: str, transition: Callable[[], T]) -> T:
        self._refuse_closed()
        return until_it_answers(transition, doing=doing, url=self.url, seconds=self._patience, closed=self._closed)

    def _claim(self, intent_id: str, owner: str, now: Micros, until: Micros, call: str) -> Claimed | Busy | Done:
        while True:
            record, found, last_call = self._state(intent_id, now)
            if record is not None and last_call == call:
                return Claimed(record.token, record.attempts)  # made by a try whose answer was lost
            if not isinstance(found, Free):
                return found
            taken = self._run("claim", intent_id=intent_id, owner=owner, now=now, until=until, call=call)
            if taken:
                return Claimed(*taken[0])

    def _attempt(self, intent_id: str, token: int, now: Micros, call: str) -> int:
        begun = self._run("attempt", intent_id=intent_id, token=token, now=now, call=call)
        if begun:
            return int(begun[0][0])
        record, found, last_call = self._state(intent_id, now)
        if record is not None and last_call == call:
            return record.attempts
        raise self._refused(record, found, intent_id, token, now)

    def _complete(self, intent_id: str, token: int, outcome: Done, now: Micros, expires_at: Micros) -> None:
        given = {"status": outcome.status, "result": outcome.result, "expires_at": expires_at, "before": now - MARGIN, "most": SWEEP}
        if self._run("complete", intent_id=intent_id, token=token, **given):
            return
        record, found, _ = self._state(intent_id, now)
        if record is None or record.token != token or found != outcome:
            raise self._refused(record, found, intent_id, token, now)

    def _release(self, intent_id: str, token: int) -> None:
        self._run("release", intent_id=intent_id, token=token)

    def _renew(self, intent_id: str, token: int, until: Micros) -> bool:
        return bool(self._run("renew", intent_id=intent_id, token=token, until=until))

    def _look(self, intent_id: str, now: Micros) -> Done | Busy | Free:
        return self._state(intent_id, now)[1]

    def _state(self, intent_id: str, now: Micros) -> tuple[Record | None, Done | Busy | Free, str]:
        """The record, what ``look`` answers, and the last call that changed it."""
        rows = self._run("look", intent_id=intent_id, now=now)
        if not rows:
            return None, Free(0), ""
        *fields, last_call, result = rows[0]
        record = Record(*fields)
        found = rules.seen(record, now)
        return record, Done(str(record.status), result) if found is None else found, last_call

    def _refused(self, record: Record | None, found: Done | Busy | Free, intent_id: str, token: int, now: Micros) -> Exception:
        return rules.outcome_stands(intent_id, token, found) if isinstance(found, Done) else rules.refused(record, intent_id, token, now)

    def _run(self, name: str, **parameters: object) -> list[Any]:
        return self._guarded(sql(f"postgres_{name}").replace("{schema}", self.schema), parameters)

    def _guarded(self, statement: str, parameters: dict[str, object] | None = None) -> list[Any]:
        """The rows of a statement; every error is one of ours, or ``Away``."""
        try:
            return self._connections.rows(statement, parameters)
        except (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn, errors.InvalidColumnReference) as problem:
            raise DedupSchemaError(
                f"{self.url} lacks a part of schema {self.schema}: {problem.diag.message_primary}. Restore a backup, or open the store again to make it; "
                "an empty one knows of no outcome, so intents delivered again run again."
            ) from problem
        except errors.InsufficientPrivilege as problem:
            raise StoreUnfit(
                f"This role may not use schema {self.schema} on {self.url}: {problem.diag.message_primary}. "
                "Connect as the role that made it, or let that role: GRANT USAGE ON SCHEMA … and SELECT, INSERT, UPDATE, DELETE ON its tables."
            ) from problem
        except errors.ReadOnlySqlTransaction as problem:
            raise Away("the server takes no writes (a standby, or a fail-over under way)") from problem
        except (psycopg.OperationalError, psycopg.InterfaceError) as problem:
            raise Away(str(problem).strip()) from problem
        except psycopg.Error as problem:
            raise StoreUnavailable(f"{self.url} refused a statement: {problem}. Look at the server's log; nothing was written.") from problem

    def _ping(self) -> None:
        self._at_once(lambda: self._guarded("SELECT 1"))

    def _at_once(self, question: Callable[[], T]) -> T:
        return until_it_answers(question, doing="ask", url=self.url, seconds=0, closed=self._closed)

    def _close(self) -> None:
        self._connections.close()

    def prepare(self, *, create: bool) -> None:
        """Look for our tables, make them when they may be made, and see what the server may forget."""
        version = self._at_once(self._version)
        if version is None:
            if not create:
                raise DedupSchemaError(f"{self.url} holds no dedup store (schema {self.schema}). Open it once with create=True, as a role that may create it.")
            made = sql("postgres_tables").replace("{schema}", self.schema).replace("{version}", str(SCHEMA))
            self._at_once(lambda: self._guarded(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK}); {made}; COMMIT"))
            version = self._at_once(self._version)
        if version is not None and version > SCHEMA:
            raise DedupSchemaError(
                f"Schema {self.schema} on {self.url} was made by a newer release: it is of version {version}, this one knows up to {SCHEMA}. Upgrade intentlog."
            )
        self._at_once(
            lambda: self._guarded(f"SELECT intent_id, owner, token, until, attempts, call, status, expires_at, result FROM {self.schema}.records LIMIT 0")
        )
        self.caveats = self._at_once(self._found_caveats)

    def _version(self) -> int | None:
        if self._guarded("SELECT to_regclass(%(name)s)", {"name": f"{self.schema}.release"}) == [(None,)]:
            return None
        rows = self._guarded(f"SELECT max(version) FROM {self.schema}.release")
        return None if rows[0][0] is None else int(rows[0][0])

    def _found_caveats(self) -> tuple[str, ...]:
        off = [name for name in ("fsync", "full_page_writes") if self._guarded(f"SHOW {name}") == [("off",)]]
        return tuple(f"{name} is off: a crash of its machine may lose or damage attempts and results" for name in off)


def schema_name(address: ServerAddress) -> str:
    """The PostgreSQL schema of a namespace: letters, digits and '_' only, so that it needs no quotes."""
    return "intentlog_dedup" + (f"_{address.namespace}" if address.namespace else "")


def open_postgres(url: str, *, create: bool = True) -> PostgresStore:
    """The store on the server that ``url`` names (libpq's form), in schema ``intentlog_dedup`` or ``intentlog_dedup_<namespace>``.

    Our parameters: ``namespace``, ``patience_ms`` (default 10000). Raises ``InvalidDedupUrl``, ``DedupSchemaError``, ``StoreUnfit``, ``StoreUnavailable``.
    """
    address = parse_server(url)
    store = PostgresStore(url, address, Connections(address, masked(url)))
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store
