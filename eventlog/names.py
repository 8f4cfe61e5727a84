"""The grammar of keys, agents and streams (S-1.1, S-1.2), checked at every door with the same words.

A *key* is the entity an agent acts for. A *stream* is ``<agent>-<key>``; what stands before the first ``-`` is
its *category*. Nothing is ever replaced silently: a key that is not in NFC is refused, with the NFC spelling named.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from .errors import InvalidName

MAX_KEY_BYTES: Final = 512
#: Stream names found valid lately: every append checks its own.
_CHECKED: Final[set[str]] = set()
_MOST_CHECKED: Final = 100_000
_AGENT: Final = re.compile(r"[a-z][a-z0-9_.]*\Z")


def check_key(key: object) -> str:
    """``key`` itself when it is valid.

    Raises ``InvalidName`` for anything but a non-empty string of at most 512 UTF-8 bytes in Unicode form NFC
    without control characters.

    >>> check_key("acct-42")
    'acct-42'
    """
    if not isinstance(key, str):
        raise InvalidName(f"A key must be a string, not {type(key).__name__}: {key!r:.80}")
    fault = _fault(key)
    if fault:
        raise InvalidName(f"Invalid key {_shown(key)}: {fault}. A key is 1 to {MAX_KEY_BYTES} UTF-8 bytes, in Unicode form NFC, without control characters.")
    return key


def check_agent(name: object) -> str:
    """``name`` itself when it is a valid agent (category) name: ``[a-z][a-z0-9_.]*``."""
    if not isinstance(name, str) or not _AGENT.match(name):
        raise InvalidName(f"Invalid agent name {name!r:.80}: it must match [a-z][a-z0-9_.]*, for example 'refunds'.")
    return name


def check_stream(stream: object) -> str:
    """``stream`` itself when it is ``<agent>-<key>`` with both parts valid."""
    if type(stream) is not str or stream not in _CHECKED:
        split_stream(stream)
        assert isinstance(stream, str)
        if len(_CHECKED) >= _MOST_CHECKED:
            _CHECKED.clear()
        _CHECKED.add(stream)
    return stream


def stream_name(agent: str, key: str) -> str:
    """The stream of ``key`` under ``agent``; both are checked.

    >>> stream_name("accounts", "acct-42")
    'accounts-acct-42'
    """
    return f"{check_agent(agent)}-{check_key(key)}"


def split_stream(stream: object) -> tuple[str, str]:
    """``(agent, key)`` of a stream name.

    >>> split_stream("accounts-acct-42")
    ('accounts', 'acct-42')
    """
    if not isinstance(stream, str) or "-" not in stream:
        raise InvalidName(f"Invalid stream {stream!r:.80}: a stream is <agent>-<key>, for example 'accounts-acct-42'.")
    agent, key = stream.split("-", 1)
    return check_agent(agent), check_key(key)


def category_of(stream: str) -> str:
    """What stands before the first ``-``, without checking the rest."""
    return stream.split("-", 1)[0]


def _fault(key: str) -> str:
    if not key:
        return "it is empty"
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "it holds a lone surrogate, which has no UTF-8 form"
    if size > MAX_KEY_BYTES:
        return f"it is {size} bytes long"
    for char in key:
        if unicodedata.category(char) == "Cc":
            return f"it holds the control character U+{ord(char):04X}"
    if not key.strip():
        return "it is blank"
    if not unicodedata.is_normalized("NFC", key):
        return f"it is not in Unicode form NFC (that would be {unicodedata.normalize('NFC', key)!r})"
    return ""


def _shown(key: str) -> str:
    return repr(key) if len(key) <= 80 else f"{key[:60]!r}… ({len(key)} characters)"
