"""The eventlog room: the record of what happened. It knows no other room."""

from __future__ import annotations

from . import interrupts as _interrupts  # noqa: F401 - first, before what takes time
from .clock import Clock, system_clock
from .codec import Codec
from .errors import (
    EventIdConflict,
    InvalidName,
    InvalidUrl,
    LeaseLost,
    LogError,
    LogUnavailable,
    NewerSchema,
    ProjectionFailed,
    ProjectionRefused,
    RegistrationError,
    RetryableError,
    StoreSchemaError,
    TerminalError,
    Undecodable,
    Unencodable,
    UnknownEventType,
    WrongExpectedVersion,
)
from .events import NewEvent, StoredEvent
from .ids import id_maker
from .log import Appended, AppendRequest, Claim, Duplicate, EventLog, Fence, Snapshot, StreamAppend, View, ViewTransaction, Wake
from .opening import open_log
from .projections import OnError, Projection, Projections, catch_up, follow, rebuild, rebuild_beside, run_all, swap
from .registry import EventRegistry, event
from .tail import tail
from .upcasting import upcasts
from .versions import ANY, EMPTY, EXISTS, NO_STREAM

__all__ = [
    "ANY",
    "EMPTY",
    "EXISTS",
    "NO_STREAM",
    "AppendRequest",
    "Appended",
    "Claim",
    "Clock",
    "Codec",
    "Duplicate",
    "EventIdConflict",
    "EventLog",
    "EventRegistry",
    "Fence",
    "InvalidName",
    "InvalidUrl",
    "LeaseLost",
    "LogError",
    "LogUnavailable",
    "NewEvent",
    "NewerSchema",
    "OnError",
    "Projection",
    "ProjectionFailed",
    "ProjectionRefused",
    "Projections",
    "RegistrationError",
    "RetryableError",
    "Snapshot",
    "StoreSchemaError",
    "StoredEvent",
    "StreamAppend",
    "TerminalError",
    "Undecodable",
    "Unencodable",
    "UnknownEventType",
    "View",
    "ViewTransaction",
    "Wake",
    "WrongExpectedVersion",
    "catch_up",
    "event",
    "follow",
    "id_maker",
    "open_log",
    "rebuild",
    "rebuild_beside",
    "run_all",
    "swap",
    "system_clock",
    "tail",
    "upcasts",
]
