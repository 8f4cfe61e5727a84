"""What can go wrong between the log and a surface.

::

    SinkFailed                a question was not taken
    ├── SinkRefused           … and the same one again will not be: it is given up after a few tries
    └── SinkUnavailable       … now: it is offered again for as long as it takes
    InvalidWebhookUrl         no URL of a webhook; a ``ValueError``

No message holds credentials, the path of a URL, or anything that the other side said.
"""

from __future__ import annotations


class SinkFailed(Exception):
    """A question was not taken."""


class SinkRefused(SinkFailed):
    """The surface looked at it and does not want it."""


class SinkUnavailable(SinkFailed):
    """The surface could not be reached, or cannot take anything now."""


class InvalidWebhookUrl(ValueError):
    """What was given is no URL of a webhook; says what is missing, without what may be a secret."""
