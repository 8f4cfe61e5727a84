"""URLs as they may be shown: without what is, or may be, a password. Rather too much is hidden than too little."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

_SECRET: Final = re.compile(r"pass(word|wd)|secret|token", re.IGNORECASE)
#: Hosts with ports that are numbers: nothing in there is a password.
_HOSTS: Final = re.compile(r"((\[[^\]/?#]*\]|[^:\[\],]*)(:[0-9]{0,5})?(,|\Z))*")


def masked_url(url: str) -> str:
    """``url`` without its passwords: whatever stands between the first ``:`` and the last ``@``, and a port that is no number.

    >>> masked_url("postgresql://me:hun/t@er2@db/log?sslpassword=x")
    'postgresql://me:***@db/log?sslpassword=***'
    >>> masked_url("postgresql://me:forgot-the-host")
    'postgresql://me:***'
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    rest = _without_credentials(rest)
    place, mark_of_query, query = rest.partition("?")
    return f"{scheme}{mark}{place}{mark_of_query}{'&'.join(map(_masked_part, query.split('&')))}"


def masked_values(url: str) -> str:
    """``url`` without its passwords and without what its parameters are set to: for one whose parameters could not be read.

    >>> masked_values("postgresql://me:hunter2@db/log?schema=x&bogus=hunter3")
    'postgresql://me:***@db/log?schema=***&bogus=***'
    """
    place, mark, query = masked_url(url).partition("?")
    return (
        place
        + mark
        + "&".join(f"{name}={'***' if value else ''}" if equals else name for name, equals, value in (each.partition("=") for each in query.split("&")))
    )


def credentials_of(url: str) -> str:
    """What stands where a password may stand, as it stands there; empty where there is none."""
    before, at, _ = url.partition("://")[2].rpartition("@")
    return before.partition(":")[2] if at else ""


def _without_credentials(rest: str) -> str:
    before, at, after = rest.rpartition("@")
    user, colon, _ = before.partition(":")
    if at and colon:
        rest = f"{user}:***@{after}"
    hosts = re.split(r"[/?]", rest, maxsplit=1)[0].rpartition("@")[2]
    if not _HOSTS.fullmatch(hosts):
        begin = rest.index(hosts)
        return rest[: begin + hosts.index(":") + 1] + "***" if ":" in hosts else rest
    return rest


def _masked_part(part: str) -> str:
    name, mark, _ = part.partition("=")
    return f"{name}=***" if mark and _SECRET.search(unquote(name)) else part
