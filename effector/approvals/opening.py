"""From a URL to the sink it names."""

from __future__ import annotations

from ...agents.signing import KeyRing
from ...eventlog.clock import Clock
from .address import parse_webhook
from .sink import ApprovalsSink


def open_sink(url: str, keys: KeyRing, clock: Clock) -> ApprovalsSink:
    """The sink of ``url``; nothing is sent yet. Raises ``InvalidWebhookUrl``."""
    address = parse_webhook(url)
    from .webhook import Webhook  # httpx is loaded where it is used

    return Webhook(address, keys, clock)
