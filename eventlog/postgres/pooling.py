"""A pool of connections of one kind: how they are set up, which are fit to be given out, and what is said when there is none."""

from __future__ import annotations

import logging
import time
from typing import Any, Final, Self, TypeAlias

import psycopg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from . import arrays
from .address import Address
from .faults import closed, exhausted, read_only_server, unreachable

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Rows: TypeAlias = "list[tuple[Any, ...]]"

#: Seconds between two looks at whether the server can be reached at all, while waiting for a connection.
_LOOK: Final = 0.1
#: The pool's own attempts to connect, a second apart, end after this many seconds; whoever asks next makes the next one.
_ATTEMPTS: Final = 2.0
#: Seconds in which a connection that is idle, or whose transaction is, must show that it lives.
_KEEPALIVES: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
_IDLE_IN_TRANSACTION: Final = "60s"
#: The order of the log rests on the isolation: each statement of an append must see what was committed before that statement. Which log it
#: is rests on the search path. So they are the last word, behind whatever the database, the role and the URL say.
_LAST_WORD: Final = "-c search_path={schema},pg_catalog -c default_transaction_isolation=read\\ committed"

# The pool tells the log of failed attempts; whoever asks for a connection is told by an error.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class Attempts:
    """The last failure to connect: the pool's own threads make the attempts, and would only log it."""

    error: Exception | None = None
    failed_at: float = 0.0


class Checked(psycopg.Connection[tuple[Any, ...]]):
    """A connection that knows when it was last known to be well."""

    well_at: float = 0.0

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """As psycopg's; a failure is also noted in ``attempts`` where that is given."""
        attempts: Attempts | None = kwargs.pop("attempts", None)
        try:
            made = super().connect(conninfo, **kwargs)
        except psycopg.Error as error:
            if attempts is not None:
                attempts.error, attempts.failed_at = error, time.monotonic()
            raise
        arrays.register(made)
        made.well_at = time.monotonic()
        return made


class Pool:
    """At most ``size`` connections. Those that are broken, or turned read-only in a fail-over, are not given out again."""

    def __init__(self, address: Address, *, read_only: bool, durable: bool, size: int) -> None:
        self._address = address
        self._writes = not read_only
        self._attempts = Attempts()
        self._doubted_at = 0.0
        self._pool: ConnectionPool[Checked] = ConnectionPool(
            kwargs={**settings(address, read_only=read_only, durable=durable), "attempts": self._attempts},
            connection_class=Checked,
            check=self._check,
            min_size=0,
            max_size=size,
            num_workers=1,
            reconnect_timeout=_ATTEMPTS,
            open=True,
        )

    def take(self) -> Checked:
        """A connection, to be given back. Raises ``LogUnavailable``: closed, cannot be made, or all in use for ``pool_timeout``."""
        begun = time.monotonic()
        deadline = begun + self._address.pool_timeout
        while True:
            try:
                return self._pool.getconn(min(_LOOK, max(deadline - time.monotonic(), 0.001)))
            except PoolClosed as error:
                raise closed(self._address) from error
            except PoolTimeout as error:
                failed = self._attempts.error
                if failed is not None and self._attempts.failed_at >= begun:
                    raise unreachable(self._address, failed) from failed
                if time.monotonic() >= deadline:
                    raise exhausted(self._address) from error

    def give_back(self, connection: Checked) -> None:
        """What is broken, or no longer fit, is replaced by the pool."""
        if self._writes and turned_read_only(connection):
            connection.close()
        self._pool.putconn(connection)

    def distrust(self, connection: Checked) -> None:
        """A connection failed: it goes, and those made before are looked at before they are given out again."""
        self._doubted_at = time.monotonic()
        connection.close()

    def close(self) -> None:
        """Close those that lie here; the others follow when they come back."""
        self._pool.close()

    def _check(self, connection: Checked) -> None:
        if self._writes and turned_read_only(connection):
            connection.close()
            raise read_only_server(self._address)
        if connection.well_at <= self._doubted_at:
            connection.execute("")
            connection.well_at = time.monotonic()


def turned_read_only(connection: Connection) -> bool:
    """Whether the server has said that this session takes no writes; it does so by itself, no question is asked."""
    if connection.closed:
        return False
    told = connection.info.parameter_status
    return told("in_hot_standby") == "on" or told("default_transaction_read_only") == "on"


def settings(address: Address, *, read_only: bool, durable: bool) -> dict[str, Any]:
    """What ``Checked.connect`` is given for a connection of this kind."""
    ours = {
        "statement_timeout": f"{round(address.statement_timeout * 1000)}ms",
        "idle_in_transaction_session_timeout": _IDLE_IN_TRANSACTION,
        "jit": "off",
        # Every statement looks rows up by an index, and its plan is kept while tables grow. One made for an empty table must be right for a full one.
        "enable_seqscan": "off",
        "enable_hashjoin": "off",
        "enable_mergejoin": "off",
        # An index gives rows in its order, and stops where a LIMIT says so; a bitmap of them is made whole and sorted.
        "enable_bitmapscan": "off",
        # Lists travel as arrays, and the planner guesses how long one is that it does not see; a plan for the list at hand looks cheaper to it,
        # so it would plan every statement anew, each time, which takes longer than most of them do. Every plan of ours is the same plan.
        "plan_cache_mode": "force_generic_plan",
    }
    if read_only:
        ours["default_transaction_read_only"] = "on"
        # A person waits for it. What writes, makes tables or builds views waits as long as a statement may take: giving up would cost it its work.
        ours["lock_timeout"] = f"{round(address.lock_timeout * 1000)}ms"
    if not durable:
        ours["synchronous_commit"] = "off"
    options = " ".join(f"-c {name}={value}" for name, value in ours.items())
    theirs = dict(address.server)
    theirs["options"] = f"{options} {theirs.get('options', '')} {_LAST_WORD.format(schema=address.schema)}"
    theirs.setdefault("target_session_attrs", "any" if read_only else "read-write")
    theirs.setdefault("application_name", f"intentlog {'reading' if read_only else 'writing' if durable else 'leasing'}")
    for name, value in _KEEPALIVES.items():
        theirs.setdefault(name, value)
    return {
        **theirs,
        "client_encoding": "UTF8",
        "autocommit": True,
        "cursor_factory": psycopg.RawCursor,
    }


def connect(address: Address, *, read_only: bool) -> Checked:
    """One connection beside every pool, made here and now. Raises ``psycopg.Error``."""
    return Checked.connect(**settings(address, read_only=read_only, durable=True))
