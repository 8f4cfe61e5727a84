"""What a dedup URL says of its store beyond what the client library reads, and how it is shown without its credentials."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

import attrs

from .errors import InvalidDedupUrl

NAMESPACE: Final = re.compile(r"[a-z0-9_]{1,40}\Z")
_DEFAULT_PATIENCE_MS: Final = 10_000
_SECRET: Final = re.compile(r"pass|secret|token|credential", re.IGNORECASE)


@attrs.frozen
class ServerAddress:
    """A server, the part of it that is ours, and how long to wait for it."""

    #: For the client library; holds credentials, and is never shown.
    url: str = attrs.field(repr=False)
    #: Keeps deployments apart that share a server; empty by default.
    namespace: str = ""
    #: Seconds for which a transition is tried again while the server is away.
    patience: float = _DEFAULT_PATIENCE_MS / 1000


def parse_server(url: str) -> ServerAddress:
    """``url`` without our own parameters, ``namespace`` and ``patience_ms``. Raises ``InvalidDedupUrl``."""
    location, mark, query = url.partition("?")
    namespace, patience, theirs = "", _DEFAULT_PATIENCE_MS, []
    for part in query.split("&") if mark else ():
        name, _, raw = part.partition("=")
        value = unquote_plus(raw)
        if name == "namespace":
            namespace = _namespace(url, value)
        elif name == "patience_ms":
            patience = _milliseconds(url, value)
        elif part:
            theirs.append(part)
    return ServerAddress("?".join((location, "&".join(theirs))) if theirs else location, namespace, patience / 1000)


def _namespace(url: str, value: str) -> str:
    if not NAMESPACE.match(value):
        raise InvalidDedupUrl(f"namespace={value!r:.80} in {masked(url)} must be 1 to 40 of a-z, 0-9 and '_', for example namespace=staging")
    return value


def _milliseconds(url: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise InvalidDedupUrl(f"patience_ms={value!r:.80} in {masked(url)} must be a whole number of milliseconds, for example 10000")
    return int(value)


def masked(url: str) -> str:
    """``url`` as it may be shown and logged: no password, and no parameter that sounds like one. Rather too much is hidden than too little.

    >>> masked("postgresql://ann:s3cr3t@db.internal:5432/effects?sslmode=require&sslpassword=x")
    'postgresql://ann:***@db.internal:5432/effects?sslmode=require&sslpassword=***'
    >>> masked("redis://:p@ss/word@cache:6379/0")
    'redis://***@cache:6379/0'
    >>> masked("redis://:forgot-the-host")
    'redis://***'
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return "***" if _SECRET.search(url) or "@" in url else url[:200]
    credentials, at, place = rest.rpartition("@")
    if at:
        user, colon, _ = credentials.partition(":")
        rest = f"{user}:***@{place}" if colon and user else f"***@{place}"
    elif ":" in (authority := re.split(r"[/?#]", rest, maxsplit=1)[0]) and not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:]+)(:\d*)?", authority):
        rest = "***" + rest[len(authority) :]
    location, mark2, query = rest.partition("?")
    return f"{scheme}://{location}{mark2}{'&'.join(map(_masked_part, query.split('&')))}"[:300]


def masked_values(url: str) -> str:
    """The same without what any parameter is set to: for a URL whose parameters could not be read.

    >>> masked_values("redis://:hunter2@cache:6379?bogus=hunter3")
    'redis://***@cache:6379?bogus=***'
    """
    return re.sub(r"(?<=[?&])([^=&]*)=[^&]*", r"\1=***", masked(url))


def _masked_part(part: str) -> str:
    name, mark, _ = part.partition("=")
    return f"{name}=***" if mark and _SECRET.search(name) else part
