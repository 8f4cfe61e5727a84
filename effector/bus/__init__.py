"""Intents from a message bus, outcomes to it: the second engine of the effector.

Modules by reason to change: ``protocol`` (what a bus must do), ``errors``, ``memory`` (the bus of one process), ``opening`` (URLs).
Client libraries are imported when a URL asks for them.
"""

from __future__ import annotations

from .errors import BadBusUrl, BadMessage, BusClientMissing, BusError, BusUnavailable, MessageTooLarge, NewerMessage, RetryableBusError, TerminalBusError
from .memory import MemoryBroker, MemoryBus
from .opening import Buses
from .protocol import Bus, Message, Outgoing, Polled, Sink, Source

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
