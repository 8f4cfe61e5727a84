"""The log behind the `eventsourcing` library's own interfaces, so that its applications run on it unchanged.

``PERSISTENCE_MODULE=intentlog.eventlog.recorders.sqlite`` (or ``.memory``) is all an application needs; with the name of
this package instead, ``EVENTLOG_URL`` decides which store it is. Aggregates become ordinary streams (``layout``), written
by the log's own append; of the library only its interfaces, exceptions, mapper, ciphers and compressors are used.

Nothing else in this room imports this package, because importing the library patches ``dataclasses`` for the whole process.
"""

from __future__ import annotations

from .factory import LogFactory
from .layout import Layout
from .recording import LogAggregateRecorder, LogApplicationRecorder
from .snapshots import LogSnapshotRecorder
from .subscription import LogSubscription
from .tracking import LogProcessRecorder, LogTrackingRecorder

__all__ = [
    "Layout",
    "LogAggregateRecorder",
    "LogApplicationRecorder",
    "LogFactory",
    "LogProcessRecorder",
    "LogSnapshotRecorder",
    "LogSubscription",
    "LogTrackingRecorder",
]
