"""Hints between processes: a NOTIFY that says "look now", sent behind the appends and never inside of one.

A NOTIFY in the append's own transaction would take a lock that lets one commit through at a time, the disk's wait
included. So a thread sends them on a connection of its own, whose commits do not wait for the disk, at most one in 20 ms;
the same thread hears those of other processes. Hints may be lost in many ways: the connection breaks, nobody listens yet,
a firewall drops it silently, a pooler takes LISTEN away. Whoever waits therefore looks by itself as well.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import threading
import time
from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import sql

from .address import Address
from .pooling import Checked, settings

#: Seconds that lie at least between two hints.
_APART: Final = 0.02
#: Seconds until a connection that failed is made again, at first and at most.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
#: Seconds that closing waits for the thread.
_FAREWELL: Final = 2.0
NAME: Final = "intentlog hints"


class Courier:
    """A thread that sends hints and hears them; it begins with the first of either."""

    def __init__(self, address: Address, heard: Callable[[], None], *, sends: bool) -> None:
        #: Channels belong to the database, and a schema is a log.
        self._channel = sql.Identifier(address.schema)
        self._settings = settings(address, read_only=not sends, durable=False)
        if "application_name" not in address.server:
            self._settings["application_name"] = NAME
        self._heard = heard
        self._sends = sends
        self._guard = threading.Lock()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._bell: tuple[int, int] | None = None
        self._listens = self._unsent = False

    def send(self) -> None:
        """Say soon that there is something to look at."""
        if self._sends and not self._unsent:
            self._unsent = True
            self._ring()

    def listen(self) -> None:
        """Hear hints from now on."""
        if not self._listens:
            self._listens = True
            self._ring()

    def close(self) -> None:
        """End the thread. A hint that has not been sent yet is lost; a connection that is only being made ends by itself."""
        with self._guard:
            self._closing.set()
            thread = self._thread
        if thread is not None:
            self._ring()
            thread.join(_FAREWELL)

    def _ring(self) -> None:
        with self._guard:
            if self._thread is None and not self._closing.is_set():
                self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                self._thread = threading.Thread(target=self._run, args=(self._bell[0],), name=NAME, daemon=True)
                self._thread.start()
            if self._bell is not None:
                with contextlib.suppress(BlockingIOError):  # full: it rings already
                    os.write(self._bell[1], b"!")

    def _run(self, bell: int) -> None:
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            began = time.monotonic()
            try:
                with contextlib.closing(Checked.connect(**self._settings)) as connection:
                    self._serve(connection, bell)
            except (psycopg.Error, OSError):
                # Only hints are lost; whoever reads or writes meets the same trouble, and tells it.
                if time.monotonic() - began > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
                self._closing.wait(random.uniform(pause / 2, pause))
                pause = min(pause * 2, _LONGEST_PAUSE)
        with self._guard:
            assert self._bell is not None
            ends, self._bell = self._bell, None
            for end in ends:
                os.close(end)

    def _serve(self, connection: Checked, bell: int) -> None:
        """Send what is to be sent and hear what comes, until the end or the first error."""
        connection.add_notify_handler(self._told(connection))  # what comes together with the answer to a statement
        hint = sql.SQL("NOTIFY {}").format(self._channel).as_bytes(connection)
        listening = False
        next_hint = 0.0
        while not self._closing.is_set():
            if self._listens and not listening:
                connection.execute(sql.SQL("LISTEN {}").format(self._channel))
                listening = True
                self._heard()  # what came before went by unheard
            pause = None
            if self._unsent:
                pause = max(next_hint - time.monotonic(), 0.0)
                if not pause:
                    self._unsent = False
                    connection.execute(hint)
                    next_hint, pause = time.monotonic() + _APART, None
            ready, _, _ = select.select([connection.fileno(), bell], [], [], pause)
            if bell in ready:
                os.read(bell, 4096)
            if connection.fileno() in ready:
                self._hear(connection)

    def _hear(self, connection: Checked) -> None:
        connection.pgconn.consume_input()
        told = self._told(connection)
        while notice := connection.pgconn.notifies():
            told(notice)

    def _told(self, connection: Checked) -> Callable[[psycopg.Notify | psycopg.pq.PGnotify], None]:
        """What hears a hint: those of this very object say nothing new."""
        mine = connection.info.backend_pid

        def told(notice: psycopg.Notify | psycopg.pq.PGnotify) -> None:
            sender = notice.pid if isinstance(notice, psycopg.Notify) else notice.be_pid
            if sender != mine:
                self._heard()

        return told
