"""The door of every store: what is refused before anything is asked, so that all stores refuse the same.

A store derives from ``CheckedStore`` and brings the transitions, which get checked values and, where a lost
acknowledgement must not count twice, the id of the call.
"""

from __future__ import annotations

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Self, TypeVar

from ...eventlog.clock import MILLISECOND, SECOND, Micros
from .address import masked
from .errors import ResultTooLarge, StoreUnavailable
from .store import Busy, Claimed, Done, Free

T = TypeVar("T")

LONGEST_NAME: Final = 512
"""UTF-8 bytes of an intent id, an owner or a status."""
LAST_MOMENT: Final = 2**53
"""Moments are below this (the year 2255): Redis counts in doubles."""
MOST_BYTES: Final = 64 << 20
"""The largest result any store takes."""
MARGIN: Final = 600 * SECOND
"""How long after its expiry a result is kept all the same, so that a clock that runs ahead deletes nothing that others still read."""
SWEEP: Final = 32
"""Expired results removed in passing by one ``complete``, at most."""


class CheckedStore(ABC):
    """A ``DedupStore`` but for its transitions."""

    shared = True

    def __init__(self, url: str) -> None:
        self.url = masked(url)
        self.caveats: tuple[str, ...] = ()
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def claim(self, intent_id: str, owner: str, *, now: Micros, until: Micros) -> Claimed | Busy | Done:
        check_name("intent id", intent_id)
        check_name("owner", owner)
        check_span("until", until, now)
        call = _call_id()
        return self._tried("claim", lambda: self._claim(intent_id, owner, now, until, call))

    def attempt(self, intent_id: str, token: int, *, now: Micros) -> int:
        check_name("intent id", intent_id)
        check_moment("token", token)
        check_moment("now", now)
        call = _call_id()
        return self._tried("record an attempt", lambda: self._attempt(intent_id, token, now, call))

    def complete(self, intent_id: str, token: int, result: bytes, *, status: str, now: Micros, expires_at: Micros) -> None:
        check_name("intent id", intent_id)
        check_moment("token", token)
        check_name("status", status)
        check_span("expires_at", expires_at, now)
        if not isinstance(result, bytes):
            raise TypeError(f"The result of intent {intent_id} must be bytes, not {type(result).__name__}")
        if len(result) > MOST_BYTES:
            raise ResultTooLarge(
                f"The result of intent {intent_id} has {len(result):,} bytes; a store takes up to {MOST_BYTES:,}. Keep it elsewhere and return a reference."
            )
        outcome = Done(status, result)
        self._tried("complete", lambda: self._complete(intent_id, token, outcome, now, expires_at))

    def release(self, intent_id: str, token: int) -> None:
        check_name("intent id", intent_id)
        check_moment("token", token)
        self._tried("release", lambda: self._release(intent_id, token))

    def renew(self, intent_id: str, token: int, *, until: Micros, now: Micros) -> bool:
        check_name("intent id", intent_id)
        check_moment("token", token)
        check_span("until", until, now)
        return self._tried("renew", lambda: self._renew(intent_id, token, until))

    def look(self, intent_id: str, *, now: Micros) -> Done | Busy | Free:
        check_name("intent id", intent_id)
        check_moment("now", now)
        return self._tried("look", lambda: self._look(intent_id, now))

    def ping(self) -> None:
        self._refuse_closed()
        self._ping()

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._close()

    def _refuse_closed(self) -> None:
        if self._closed.is_set():
            raise StoreUnavailable(f"The dedup store {self.url} has been closed. Open a new one with open_dedup.")

    def _tried(self, doing: str, transition: Callable[[], T]) -> T:
        """The transition's answer; a store behind a network tries again while it is away."""
        self._refuse_closed()
        return transition()

    @abstractmethod
    def _claim(self, intent_id: str, owner: str, now: Micros, until: Micros, call: str) -> Claimed | Busy | Done: ...

    @abstractmethod
    def _attempt(self, intent_id: str, token: int, now: Micros, call: str) -> int: ...

    @abstractmethod
    def _complete(self, intent_id: str, token: int, outcome: Done, now: Micros, expires_at: Micros) -> None: ...

    @abstractmethod
    def _release(self, intent_id: str, token: int) -> None: ...

    @abstractmethod
    def _renew(self, intent_id: str, token: int, until: Micros) -> bool: ...

    @abstractmethod
    def _look(self, intent_id: str, now: Micros) -> Done | Busy | Free: ...

    @abstractmethod
    def _ping(self) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...


def check_name(what: str, value: str) -> None:
    """Raises ``ValueError`` or ``TypeError`` unless ``value`` is text that every store can hold."""
    if not isinstance(value, str):
        raise TypeError(f"The {what} must be a str, not {type(value).__name__}: {value!r:.80}")
    try:
        length = len(value.encode())
    except UnicodeEncodeError as problem:
        raise ValueError(f"The {what} {value!r:.80} is no text: it holds half of a surrogate pair") from problem
    if not value or length > LONGEST_NAME or "\0" in value:
        raise ValueError(f"The {what} {value!r:.80} must have 1 to {LONGEST_NAME} UTF-8 bytes and no NUL; it has {length}")


def check_moment(what: str, value: int) -> None:
    """Raises ``ValueError`` or ``TypeError`` unless ``value`` is a whole number from 0 up to ``LAST_MOMENT``."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be an int, not {type(value).__name__}: {value!r:.80}")
    if not 0 <= value < LAST_MOMENT:
        raise ValueError(f"{what}={value} must be from 0 to 2**53 - 1: moments are µs since 1970 (a clock in ns?)")


def check_span(what: str, value: Micros, now: Micros) -> None:
    """Raises unless both are moments and ``value`` comes after ``now``."""
    check_moment("now", now)
    check_moment(what, value)
    if value <= now:
        raise ValueError(f"{what}={value} must come after now={now}: it is {(now - value) // MILLISECOND} ms past already")


def _call_id() -> str:
    return secrets.token_hex(8)
