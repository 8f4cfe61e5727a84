"""Everything that can go wrong between an effector and a message bus, as one tree.

::

    BusError
    ├── TerminalBusError            trying again cannot help
    │   ├── BadBusUrl               a URL that no bus understands
    │   ├── BusClientMissing        the bus's client library is not installed
    │   ├── MessageTooLarge         the bus takes no message of this size
    │   └── BadMessage              bytes that are no intent: damaged, cut short, too many, on the wrong key
    │       └── NewerMessage        … or written by a newer release
    └── RetryableBusError           the same call after a wait may succeed
        └── BusUnavailable          the bus cannot be reached, or did not confirm what was published

Messages show URLs without their credentials.
"""

from __future__ import annotations


class BusError(Exception):
    """Base of every error that a bus raises on purpose."""


class TerminalBusError(BusError):
    """Trying again without changing something cannot help."""


class RetryableBusError(BusError):
    """The same call after a wait may succeed."""


class BadBusUrl(TerminalBusError):
    """A URL that no bus understands; says what one looks like."""


class BusClientMissing(TerminalBusError):
    """The client library of the bus is not installed; names the extra that brings it."""


class MessageTooLarge(TerminalBusError):
    """A message larger than the bus takes; nothing of the call it was in is known to be published."""


class BadMessage(TerminalBusError):
    """Bytes that cannot be taken for an intent or an outcome; says why."""


class NewerMessage(BadMessage):
    """A message written by a newer release than this one."""


class BusUnavailable(RetryableBusError):
    """The bus cannot be reached, or did not confirm; what was published may be there or not."""
