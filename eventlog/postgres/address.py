"""What a ``postgresql://`` URL says, and nothing about what is found there.

Our own parameters are taken out; everything else is libpq's, which also looks into its environment (``PGHOST``,
``PGPASSFILE``, …). A password is never shown: neither in ``log.url`` nor in an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

import attrs
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from ..errors import InvalidUrl
from ..masking import credentials_of, masked_url, masked_values

_FORM: Final = "It is postgresql://user@host:5432/database?schema=intentlog."
_SCHEMES: Final = ("postgresql", "postgres")
_SCHEMA: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")
_PORT: Final = re.compile(r"[0-9]{1,5}")
#: Shorter ones would make holes in every other word, and hide nothing.
_SHORTEST_SECRET: Final = 4
_MOST_CONNECTIONS: Final = 1_000
_CONNECT_TIMEOUT: Final = "10"


@attrs.frozen
class Address:
    """A schema in a database, and how to treat it."""

    #: As it may be shown.
    shown: str
    #: What libpq is given, by keyword.
    server: Mapping[str, Any] = attrs.field(repr=False)
    #: What no text may show, though the server or the driver said it.
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    #: All tables of the log lie in this one.
    schema: str = "intentlog"
    #: The most connections of this object at once; half as many, at most four, are kept for leases beside them.
    pool_size: int = 10
    #: Seconds to wait for one of them.
    pool_timeout: float = 30.0
    #: Seconds after which the server gives a statement up; 0: never.
    statement_timeout: float = 60.0
    #: Seconds after which who only reads gives up waiting for a lock; 0: only when the statement is given up.
    lock_timeout: float = 10.0


def parse_address(url: str) -> Address:
    """The address behind ``url``. Raises ``InvalidUrl`` naming the faulty part, and the known ones."""
    shown = masked_url(url)
    scheme, mark, rest = url.partition("://")
    if scheme not in _SCHEMES or not mark:
        raise InvalidUrl(f"{shown!r:.200} is no PostgreSQL URL. {_FORM}")
    place, _, query = rest.partition("?")
    ours: dict[str, Any] = {}
    theirs: list[tuple[str, str]] = []
    # To libpq a + is a + and no space, as in any URL that is not a form's.
    for name, value in parse_qsl(query.replace("+", "%2B"), keep_blank_values=True):
        read = _OURS.get(name)
        if read is None:
            theirs.append((name, value))
        elif name in ours:
            raise InvalidUrl(f"{name} is given twice in {shown!r:.200}. Give it once.")
        else:
            ours[name] = read(name, value, shown)
    server = _server(place, theirs, shown, url)
    public = {str(value) for name, value in server.items() if "pass" not in name}
    secrets = sorted({secret for secret in _secrets(url) if len(secret) >= _SHORTEST_SECRET} - public, key=len, reverse=True)
    return Address(shown=shown, server=server, secrets=tuple(secrets), **ours)


def _server(place: str, theirs: list[tuple[str, str]], shown: str, url: str) -> dict[str, Any]:
    """Keywords for libpq, which checks what it knows; what it says of a URL is not shown when it may quote a password."""
    tail = f"?{urlencode(theirs, quote_via=quote)}" if theirs else ""
    authority, _, path = place.partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise InvalidUrl(
            f"{shown!r:.200} has more than one @, or one behind a /. Percent-encode those of the name and password: %40 for @, %2F for /, %3F for ?. {_FORM}"
        )
    try:
        found = dict(conninfo_to_dict(f"postgresql://{place}{tail}"))
    except ProgrammingError as error:
        reason = str(error).strip()
        if url.count("@") > 1 or "@" not in authority or any(secret in reason for secret in _secrets(url)):
            reason = "a part of it cannot be read (is the password percent-encoded?)"
        known = ", ".join(sorted(_OURS))
        raise InvalidUrl(f"libpq does not understand {masked_values(url)!r:.200}: {reason}. {_FORM} Beside libpq's own parameters there are {known}.") from None
    if not all(_PORT.fullmatch(port) and 0 < int(port) < 1 << 16 for port in str(found.get("port", "")).split(",") if port):
        raise InvalidUrl(f"A port in {shown!r:.200} is no number from 1 to 65535; one that may be a password is not shown. {_FORM}")
    found.setdefault("connect_timeout", _CONNECT_TIMEOUT)
    return found


def _secrets(url: str) -> list[str]:
    """Whatever stands where a password may stand, as it stands there and decoded."""
    found = [credentials_of(url)]
    for part in url.partition("?")[2].split("&"):
        name, _, value = part.partition("=")
        if "pass" in unquote(name).lower():
            found.append(value)
    return [secret for each in found for secret in {each, unquote(each)} if secret]


def _schema(name: str, value: str, shown: str) -> str:
    if not _SCHEMA.fullmatch(value):
        raise InvalidUrl(
            f"schema={value!r:.80} in {shown!r:.200} must be 1 to 63 small letters, digits and _, begin with no digit, and not with pg_: schema=intentlog."
        )
    return value


def _count(name: str, value: str, shown: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 4 and 1 <= int(value) <= _MOST_CONNECTIONS):
        raise InvalidUrl(f"{name}={value!r:.80} in {shown!r:.200} must be a whole number from 1 to {_MOST_CONNECTIONS}, for example 10.")
    return int(value)


def _seconds(name: str, value: str, shown: str) -> float:
    if not _SECONDS.fullmatch(value):
        raise InvalidUrl(f"{name}={value!r:.80} in {shown!r:.200} must be a number of seconds, for example 30 or 2.5.")
    return float(value)


_OURS: Final[Mapping[str, Any]] = {"schema": _schema, "pool_size": _count, "pool_timeout": _seconds, "statement_timeout": _seconds, "lock_timeout": _seconds}
