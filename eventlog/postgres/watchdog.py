"""Who holds the log back: the oldest transaction that may still write, and an alarm when it stays for long.

A tail stops below the oldest running transaction of the whole server, whatever that one does: a forgotten ``BEGIN`` in
somebody's psql, in any database, delays every reader of the log. Nothing is lost by it, and nothing can be shown before
it ends, so all that helps is to say who it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

import attrs

from ..clock import Micros
from ..errors import LogError
from .connection import Database
from .statements import statement

_MOST_COUNTED: Final = 10_000
_QUERY_WIDTH: Final = 200


@attrs.frozen
class HorizonHeld:
    """Events that are committed and cannot be shown yet, and the session that is in their way."""

    #: Id of the oldest transaction that is still running.
    transaction: int
    #: How many events wait for it; 10,000 stands for that many or more.
    events: int
    #: When the first of them was appended: microseconds since 1970.
    since: Micros
    #: The server's process that runs it; ``None`` for a prepared transaction, or when it ended just now.
    pid: int | None = None
    user: str = ""
    application: str = ""
    #: It need not be the log's own database.
    database: str = ""
    #: ``idle in transaction``, ``active``, … or ``prepared``; empty when this role may not see it (grant ``pg_read_all_stats``).
    state: str = ""
    #: Seconds since the transaction began, where that can be seen.
    age: float | None = None
    #: The beginning of its last statement.
    query: str = ""
    #: The name of a prepared transaction.
    prepared: str = ""

    def __str__(self) -> str:
        count = f"{self.events:,}{' or more' if self.events >= _MOST_COUNTED else ''} event{'' if self.events == 1 else 's'}"
        front = f"{count} cannot be shown before an older transaction ends"
        since = f", open for {self.age:,.0f} s" if self.age is not None else ""
        if self.prepared:
            who = f"prepared transaction {self.prepared!r} of {self.user} in database {self.database}"
            return f"{front}: {who}{since}. COMMIT PREPARED or ROLLBACK PREPARED it there."
        if self.pid is None:
            return f"{front} ({self.transaction}); no session with it can be seen. See pg_stat_activity as a superuser."
        who = f"pid {self.pid} of {self.user} ({self.application or 'no application name'}) in database {self.database}"
        doing = f", {self.state}" if self.state else " (the role pg_read_all_stats lets you see more)"
        last = f", its last statement: {self.query}" if self.query and self.state else ""
        return f"{front}: {who}{doing}{since}{last}. Let it end, or end it: SELECT pg_terminate_backend({self.pid})"


def horizon(database: Database) -> HorizonHeld | None:
    """Who is in the way now; ``None`` while every committed event can be shown."""
    found = database.rows(statement("find_horizon_holder"))
    if not found:
        return None
    transaction, events, since, pid, *said, age, query, prepared = found[0]
    user, application, place, state = (each or "" for each in said)
    query = " ".join((query or "").split())[:_QUERY_WIDTH]
    return HorizonHeld(transaction, events, since, pid, user, application, place, state, age, query, prepared or "")


class Watchdog:
    """Tells of a holder that stays: after ``patience`` seconds, then every ``again`` seconds; and when it has gone.

    ``look`` is called once a second by ``run``, or by the owner of this object.
    """

    def __init__(
        self,
        ask: Callable[[], HorizonHeld | None],
        on_held: Callable[[HorizonHeld], None],
        on_freed: Callable[[HorizonHeld], None] | None = None,
        *,
        patience: float = 5.0,
        again: float = 60.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._on_held = on_held
        self._on_freed = on_freed
        self._patience = patience
        self._again = again
        self._now = now
        self._held: HorizonHeld | None = None
        self._next = 0.0
        self._told = False

    def look(self) -> HorizonHeld | None:
        """One look, and whatever has to be told after it; what was seen. Raises what asking raises."""
        found, now = self._ask(), self._now()
        before = self._held
        if before is not None and (found is None or found.transaction != before.transaction):
            if self._told and self._on_freed is not None:
                self._on_freed(before)
            before = None
        if found is not None:
            if before is None:
                self._next, self._told = now + self._patience, False
            elif now >= self._next:
                self._next, self._told = now + self._again, True
                self._on_held(found)
        self._held = found
        return found

    def run(self, stop: threading.Event, every: float = 1.0) -> None:
        """Look until ``stop`` is set. A server that cannot be asked is asked again: whoever works with it tells of that."""
        while not stop.wait(every):
            try:
                self.look()
            except LogError:
                continue


class Watching:
    """A watchdog in a thread of its own, for the length of a block."""

    def __init__(self, database: Database, on_trouble: Callable[[str], None], **options: Any) -> None:
        self._stop = threading.Event()
        dog = Watchdog(lambda: horizon(database), lambda held: on_trouble(str(held)), lambda held: on_trouble(_freed(held)), **options)
        self._thread = threading.Thread(target=dog.run, args=(self._stop,), name="intentlog watchdog", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def _freed(held: HorizonHeld) -> str:
    who = f"pid {held.pid} of {held.user}" if held.pid is not None else repr(held.prepared) if held.prepared else f"transaction {held.transaction}"
    return f"{who} no longer holds the log back; its events are shown"
