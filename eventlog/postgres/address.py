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

_FORM: Final = "It is postgresql://user@host:5432/database?schema=intentlog."
_SCHEMES: Final = ("postgresql", "postgres")
_SCHEMA: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?")
_PASSWORD: Final = re.compile(r"(://[^/?@\s:]*):[^/?\s]*@")
_SECRET: Final = re.compile(r"([?&](?:password|sslpassword|passwd)=)[^&]*", re.IGNORECASE)
_MOST_CONNECTIONS: Final = 1_000
_CONNECT_TIMEOUT: Final = "10"


@attrs.frozen
class Address:
    """A schema in a database, and how to treat it."""

    #: As it may be shown.
    shown: str
    #: What libpq is given, by keyword.
    server: Mapping[str, Any] = attrs.field(repr=False)
    #: All tables of the log lie in this one.
    schema: str = "intentlog"
    #: The most connections of this object at once; half as many, at most four, are kept for leases beside them.
    pool_size: int = 10
    #: Seconds to wait for one of them.
    pool_timeout: float = 30.0
    #: Seconds after which the server gives a statement up; 0: never.
    statement_timeout: float = 60.0


def parse_address(url: str) -> Address:
    """The address behind ``url``. Raises ``InvalidUrl`` naming the faulty part, and the known ones."""
    shown = masked(url)
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
    return Address(shown=shown, server=_server(place, theirs, shown, url), **ours)


def masked(url: str) -> str:
    """``url`` without its passwords.

    >>> masked("postgresql://me:hunter2@db/log?sslpassword=x")
    'postgresql://me:***@db/log?sslpassword=***'
    """
    return _SECRET.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))


def _server(place: str, theirs: list[tuple[str, str]], shown: str, url: str) -> dict[str, Any]:
    """Keywords for libpq, which checks what it knows; what it says of a URL is not shown when it may quote a password."""
    tail = f"?{urlencode(theirs, quote_via=quote)}" if theirs else ""
    if place.partition("/")[0].count("@") > 1:
        raise InvalidUrl(f"{shown!r:.200} has more than one @ before its host. Percent-encode the one in the name or password as %40. {_FORM}")
    try:
        found = dict(conninfo_to_dict(f"postgresql://{place}{tail}"))
    except ProgrammingError as error:
        reason = str(error).strip()
        if any(secret in reason for secret in _secrets(url)):
            reason = "a part of it cannot be read (is the password percent-encoded?)"
        known = ", ".join(sorted(_OURS))
        raise InvalidUrl(f"libpq does not understand {shown!r:.200}: {reason}. {_FORM} Beside libpq's own parameters there are {known}.") from None
    found.setdefault("connect_timeout", _CONNECT_TIMEOUT)
    return found


def _secrets(url: str) -> list[str]:
    """Whatever stands where a password may stand."""
    found = [match.group(0)[match.group(0).rindex(":", 0, -1) + 1 : -1] for match in _PASSWORD.finditer(url)]
    found += [match.group(0).partition("=")[2] for match in _SECRET.finditer(url)]
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


_OURS: Final[Mapping[str, Any]] = {"schema": _schema, "pool_size": _count, "pool_timeout": _seconds, "statement_timeout": _seconds}
