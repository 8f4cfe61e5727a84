"""Intents from a message bus, outcomes to it: the second engine of the effector (docs/effector.md).

Modules by reason to change: ``protocol`` (what a bus must do), ``errors``, ``memory`` (the bus of one process), ``opening`` (URLs); ``wire``
(what a message holds), ``damage`` (whether it holds what was staged); ``window``, ``lane`` and ``engine`` (which message is next, partition by
partition), ``taking``, ``executing``, ``calling``, ``postponing`` and ``publishing`` (one message through its phases), ``holding`` (leases),
``outlets`` (where messages leave), ``means`` (what they all work with), ``on_bus`` (a replica's ground). Names are loaded when they are first
asked for, and client libraries when a URL asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...agents.lazily import names_of

if TYPE_CHECKING:
    from .errors import BadBusUrl, BadMessage, BusClientMissing, BusError, BusUnavailable, MessageTooLarge, NewerMessage, RetryableBusError, TerminalBusError
    from .memory import MemoryBroker, MemoryBus
    from .opening import Buses
    from .protocol import Bus, Message, Outgoing, Polled, Sink, Source

_ERRORS = (
    *("BadBusUrl", "BadMessage", "BusClientMissing", "BusError", "BusUnavailable", "MessageTooLarge", "NewerMessage"),
    *("RetryableBusError", "TerminalBusError"),
)
_WHERE = {
    **dict.fromkeys(_ERRORS, "errors"),
    **dict.fromkeys(("Bus", "Message", "Outgoing", "Polled", "Sink", "Source"), "protocol"),
    "Buses": "opening",
    "MemoryBroker": "memory",
    "MemoryBus": "memory",
}

__all__ = [
    "BadBusUrl",
    "BadMessage",
    "Bus",
    "BusClientMissing",
    "BusError",
    "BusUnavailable",
    "Buses",
    "MemoryBroker",
    "MemoryBus",
    "Message",
    "MessageTooLarge",
    "NewerMessage",
    "Outgoing",
    "Polled",
    "RetryableBusError",
    "Sink",
    "Source",
    "TerminalBusError",
]

__getattr__, __dir__ = names_of(__name__, _WHERE)
