"""Where a webhook is, from its URL; and how it is shown: scheme and host alone, for paths and queries of webhooks are secrets.

``webhook+https://user:password@host/path?query#answer=https://…``: what follows ``#answer=`` is told to the surface as the place
to send answers to, and goes nowhere else. Without TLS only this machine itself is spoken to.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import attrs

from .errors import InvalidWebhookUrl

SCHEMES: Final = ("webhook+https", "webhook+http")
_FORM: Final = "webhook+https://HOST/PATH, or webhook+http://127.0.0.1:PORT/PATH on this machine"


@attrs.frozen
class WebhookAddress:
    """A webhook."""

    #: Without credentials and without what is told about answers.
    url: str = attrs.field(repr=False)
    #: User and password, or ``None``.
    auth: tuple[str, str] | None = attrs.field(repr=False)
    answer_url: str = attrs.field(repr=False)
    #: As it may be shown.
    shown: str


def is_webhook(url: str) -> bool:
    """Whether ``url`` means to be one."""
    return url.partition("://")[0].lower() in SCHEMES


def parse_webhook(url: str) -> WebhookAddress:
    """The webhook that ``url`` names. Raises ``InvalidWebhookUrl``."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as problem:
        raise InvalidWebhookUrl(f"its host or port cannot be read; it must be {_FORM}") from problem
    if f"webhook+{split.scheme}" in SCHEMES:
        raise InvalidWebhookUrl(f"write webhook+{split.scheme}:// instead of {split.scheme}://; it must be {_FORM}")
    if split.scheme not in SCHEMES or not split.hostname:
        raise InvalidWebhookUrl(f"it must be {_FORM}")
    scheme = split.scheme.removeprefix("webhook+")
    host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
    place = f"{host}:{port}" if port is not None else host
    if scheme == "http" and not _is_here(split.hostname):
        raise InvalidWebhookUrl(f"webhook+http://{place} would send questions over the network in the open; it must be {_FORM}")
    if any(not 32 < ord(each) < 127 for each in split.path + split.query):
        raise InvalidWebhookUrl("its path or query holds characters that must be percent-encoded")
    target = SplitResult(scheme, place, split.path or "/", split.query, "").geturl()
    auth = (unquote(split.username or ""), unquote(split.password or "")) if split.username or split.password else None
    return WebhookAddress(target, auth, _answer_url(split.fragment), f"webhook+{scheme}://{place}/…")


def _answer_url(fragment: str) -> str:
    if not fragment:
        return ""
    name, _, url = fragment.partition("=")
    if name != "answer" or urlsplit(url).scheme not in ("http", "https"):
        raise InvalidWebhookUrl("what stands behind its # must be answer=https://…, the place that answers may be sent to")
    return url


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
