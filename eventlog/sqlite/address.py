"""What a ``sqlite://`` URL says, and nothing about what is found there."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

import attrs

from ..errors import InvalidUrl
from ..masking import masked_values

_FORM: Final = "It is sqlite:///relative/path.db or sqlite:////absolute/path.db."
_KNOWN: Final = ("busy_timeout_ms", "synchronous")
_LEVELS: Final = ("full", "normal", "off")
_DEFAULT_BUSY_MS: Final = 10_000


@attrs.frozen
class Address:
    """A file and how to treat it."""

    path: Path
    #: ``full``: a commit survives a power cut. ``normal``: it survives a crash of the process only. ``off``: neither is promised.
    synchronous: str = "full"
    #: How long to wait for another writer, in seconds.
    busy_timeout: float = _DEFAULT_BUSY_MS / 1000


def parse_address(url: str) -> Address:
    """The address behind ``url``. Raises ``InvalidUrl`` naming the faulty part and the known parameters."""
    scheme, mark, rest = url.partition("://")
    location, _, query = rest.partition("?")
    if scheme != "sqlite" or not mark:
        raise InvalidUrl(f"{url!r:.200} is no SQLite URL. {_FORM}")
    if not location.startswith("/") or location == "/":
        raise InvalidUrl(f"{url!r:.200} names no file: three slashes and a path belong behind 'sqlite:'. {_FORM}")
    path = unquote(location[1:])
    if path == ":memory:":
        raise InvalidUrl(f"{url!r:.200}: a log in memory is opened with memory://. {_FORM}")
    if "\0" in path or path.endswith("/"):
        raise InvalidUrl(f"{url!r:.200} names no file. {_FORM}")
    synchronous, busy = "full", _DEFAULT_BUSY_MS
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name == "synchronous":
            synchronous = _level(url, value)
        elif name == "busy_timeout_ms":
            busy = _milliseconds(url, value)
        else:
            raise InvalidUrl(f"Unknown parameter {name!r:.80} in {masked_values(url)!r:.200}; known are {', '.join(_KNOWN)}.")
    return Address(Path(path), synchronous, busy / 1000)


def _level(url: str, value: str) -> str:
    if value.lower() not in _LEVELS:
        raise InvalidUrl(f"synchronous={value!r:.80} in {url!r:.200} must be one of {', '.join(_LEVELS)}.")
    return value.lower()


def _milliseconds(url: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise InvalidUrl(f"busy_timeout_ms={value!r:.80} in {url!r:.200} must be a whole number of milliseconds, for example 10000.")
    return int(value)
