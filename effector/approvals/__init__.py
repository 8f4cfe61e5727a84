"""Questions to people, published from the log to a surface that is not on it: where they go, and who sees that they get there."""

from __future__ import annotations

from .address import WebhookAddress, is_webhook, parse_webhook
from .errors import InvalidWebhookUrl, SinkFailed, SinkRefused, SinkUnavailable
from .sink import ApprovalsSink, Publication

__all__ = [
    "ApprovalsSink",
    "InvalidWebhookUrl",
    "Publication",
    "SinkFailed",
    "SinkRefused",
    "SinkUnavailable",
    "WebhookAddress",
    "is_webhook",
    "parse_webhook",
]
