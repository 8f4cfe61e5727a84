"""The Redis store (or Valkey): a hash an intent, one Lua script a transition, so that each is there as a whole or not at all.

As durable as the server is set up to be: see ``caveats``, and docs/dedup-stores.md. Needs redis-py (``pip install 'intentlog[redis]'``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from ...eventlog.clock import MILLISECOND, Micros
from . import rules
from .address import ServerAddress, masked, masked_values, parse_server
from .checking import MARGIN, CheckedStore
from .errors import DedupSchemaError, InvalidDedupUrl, StoreUnavailable, StoreUnfit
from .patience import Away, until_it_answers
from .rules import Record
from .statements import lua
from .store import Busy, Claimed, Done, Free

T = TypeVar("T")
SCHEMA: Final = 1
"""What the key ``…:schema`` holds under this release."""
_LONGEST_ANSWER_S: Final = 30.0
_CONNECT_S: Final = 5.0
_NAMES: Final = ("claim", "attempt", "complete", "release", "renew", "look")
_TEXT_ONLY: Final = ("decode_responses=", "encoding=", "encoding_errors=")


class RedisStore(CheckedStore):
    """A ``DedupStore`` in one Redis database, under keys that begin with ``prefix``."""

    def __init__(self, url: str, address: ServerAddress, client: redis.Redis) -> None:
        super().__init__(url)
        self.prefix = "intentlog:dedup:" + (f"{address.namespace}:" if address.namespace else "")
        self._patience, self._client = address.patience, client
        self._scripts = {name: client.register_script(lua(name)) for name in _NAMES}

    def _tried(self, doing: str, transition: Callable[[], T]) -> T:
        self._refuse_closed()
        return until_it_answers(transition, doing=doing, url=self.url, seconds=self._patience, closed=self._closed)

    def _claim(self, intent_id: str, owner: str, now: Micros, until: Micros, call: str) -> Claimed | Busy | Done:
        kind, *rest = self._run("claim", intent_id, owner, now, until, call)
        if kind == b"claimed":
            return Claimed(int(rest[0]), int(rest[1]))
        return _found(kind, rest)

    def _attempt(self, intent_id: str, token: int, now: Micros, call: str) -> int:
        kind, *rest = self._run("attempt", intent_id, token, now, call)
        if kind == b"attempted":
            return int(rest[0])
        raise _refused(kind, rest, intent_id, token, now)

    def _complete(self, intent_id: str, token: int, outcome: Done, now: Micros, expires_at: Micros) -> None:
        # A length of time and no moment: how the server's clock stands does not matter.
        kept_ms = (expires_at - now + MARGIN) // MILLISECOND
        kind, *rest = self._run("complete", intent_id, token, now, outcome.status, outcome.result, expires_at, kept_ms)
        if kind != b"completed":
            raise _refused(kind, rest, intent_id, token, now)

    def _release(self, intent_id: str, token: int) -> None:
        self._run("release", intent_id, token)

    def _renew(self, intent_id: str, token: int, until: Micros) -> bool:
        return bool(self._run("renew", intent_id, token, until))

    def _look(self, intent_id: str, now: Micros) -> Done | Busy | Free:
        kind, *rest = self._run("look", intent_id, now)
        return Free(int(rest[0])) if kind == b"free" else _found(kind, rest)

    def _run(self, name: str, intent_id: str, *arguments: str | bytes | int) -> Any:
        return self._guarded(lambda: self._scripts[name](keys=[f"{self.prefix}intent:{intent_id}"], args=list(arguments)))

    def _guarded(self, command: Callable[[], T]) -> T:
        """What ``command`` gives; every error is one of ours, or ``Away``."""
        try:
            return command()
        except exceptions.AuthenticationError as problem:
            raise StoreUnfit(f"{self.url} refuses these credentials: {problem}. Give it the user and password of an account that may run scripts.") from problem
        except exceptions.NoPermissionError as problem:
            raise StoreUnfit(
                f"This user lacks rights on {self.url}: {problem}. Let it: +@hash +@string +@scripting +pexpire +persist +ping +info ~{self.prefix}*"
            ) from problem
        except exceptions.OutOfMemoryError as problem:
            raise StoreUnavailable(f"{self.url} has no memory left: {problem}. Nothing was written; raise maxmemory, or keep results less long.") from problem
        except (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ReadOnlyError, exceptions.TryAgainError, OSError) as problem:
            raise Away(str(problem) or type(problem).__name__) from problem
        except exceptions.ResponseError as problem:
            if "WRONGTYPE" in str(problem):
                raise DedupSchemaError(
                    f"{self.url} holds something else under {self.prefix}*: {problem}. Choose a namespace or a database of its own."
                ) from problem
            if str(problem).startswith(("LOADING", "MASTERDOWN", "UNKILLABLE", "BUSY")):
                raise Away(str(problem)) from problem
            raise StoreUnavailable(f"{self.url} refused a script: {problem}. Look at the server's log; nothing was written.") from problem
        finally:
            if self._closed.is_set():
                self._close()

    def _at_once(self, command: Callable[[], T]) -> T:
        return until_it_answers(lambda: self._guarded(command), doing="ask", url=self.url, seconds=0, closed=self._closed)

    def _ping(self) -> None:
        self._at_once(self._client.ping)

    def _close(self) -> None:
        """Close what is idle now, and what is in use when it comes back: a connection closed under its reader breaks redis-py in ways of its own."""
        self._client.connection_pool.disconnect(inuse_connections=False)

    def prepare(self, *, create: bool) -> None:
        """See whose keys these are, make the one that says so, and refuse a server that would forget on its own."""
        key = f"{self.prefix}schema"
        if create:
            self._at_once(lambda: self._client.set(key, SCHEMA, nx=True))
        version: Any = self._at_once(lambda: self._client.get(key))
        if version is None:
            raise DedupSchemaError(f"{self.url} holds no dedup store ({key} is not there). Open it once with create=True.")
        if not version.isdigit() or int(version) > SCHEMA:
            raise DedupSchemaError(
                f"The dedup store under {self.prefix}* on {self.url} was made by a newer release: its version is {version!r:.40}, this one knows {SCHEMA}. "
                "Upgrade intentlog."
            )
        memory: Any = self._at_once(lambda: self._client.info("memory"))
        policy = str(memory.get("maxmemory_policy", "noeviction"))
        if int(memory.get("maxmemory", 0)) and policy != "noeviction":
            raise StoreUnfit(
                f"{self.url} throws keys away when its memory is full (maxmemory-policy {policy}), and with them the knowledge that an intent has run. "
                "Set maxmemory-policy to noeviction, or use a server of its own."
            )
        self.caveats = self._at_once(self._found_caveats)

    def _found_caveats(self) -> tuple[str, ...]:
        persistence: Any = self._client.info("persistence")
        if not int(persistence.get("aof_enabled", 0)):
            return (
                "appendonly is off: when the server ends, claims, attempts and results since its last dump are forgotten: intents delivered again run again",
            )
        try:
            found: Any = self._client.config_get("appendfsync")
        except (exceptions.NoPermissionError, exceptions.ResponseError):
            return ("this user may not read appendfsync: unless it is always, a power cut may take attempts and results of the last second with it",)
        policy = str(found.get("appendfsync", ""))
        return () if policy == "always" else (f"appendfsync is {policy}: a power cut may take attempts and results of the last second or more with it",)


def _found(kind: bytes, rest: list[Any]) -> Busy | Done:
    if kind == b"busy":
        return Busy(int(rest[0]), rest[1].decode())
    return Done(rest[0].decode(), rest[1])


def _refused(kind: bytes, rest: list[Any], intent_id: str, token: int, now: Micros) -> Exception:
    if kind == b"done":
        return rules.outcome_stands(intent_id, token, Done(rest[0].decode(), rest[1]))
    record = None if kind == b"none" else Record(rest[0].decode(), int(rest[1]), int(rest[2]))
    return rules.refused(record, intent_id, token, now)


def open_redis(url: str, *, create: bool = True) -> RedisStore:
    """The store on the server that ``url`` names: ``redis://``, or ``rediss://`` for TLS, with redis-py's parameters.

    Our parameters: ``namespace``, ``patience_ms`` (default 10000). Raises ``InvalidDedupUrl``, ``DedupSchemaError``, ``StoreUnfit``, ``StoreUnavailable``.
    """
    address = parse_server(url)
    if any(part.startswith(_TEXT_ONLY) for part in address.url.partition("?")[2].split("&")):
        raise InvalidDedupUrl(f"{masked(url)} sets how text is decoded; results are bytes. Leave decode_responses and encoding out.")
    try:
        client = redis.Redis.from_url(
            address.url, socket_timeout=_LONGEST_ANSWER_S, socket_connect_timeout=_CONNECT_S, socket_keepalive=True, retry=Retry(NoBackoff(), 0)
        )
        # A connection is made, and not connected, because only that refuses a parameter that redis-py does not know.
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except (ValueError, TypeError):
        # The text would quote the part that could not be read, which may be a piece of the password.
        raise InvalidDedupUrl(
            f"redis-py cannot read {masked_values(url)}. Its form is redis://user:password@host:6379/0, with '@', '/', ':' and '%' in the password "
            "written as %40, %2F, %3A and %25."
        ) from None
    store = RedisStore(url, address, client)
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store
