"""The snapshot recorder: the log's own snapshots, of which there is one a stream and which may be deleted at any time (S-8.2).

The library keeps every snapshot for ever; here a newer one takes the older one's place. Loading an aggregate as of a
version before it folds from the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from eventsourcing.persistence import AggregateRecorder, StoredEvent

from ..log import Snapshot
from .faults import translated
from .recording import LogRecorder

#: Before the topic of the snapshot class: nothing else that folds this stream takes it for its own.
_MARK: Final = "eventsourcing:"


class LogSnapshotRecorder(LogRecorder, AggregateRecorder):
    """The latest snapshot of each aggregate."""

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        """Keep each snapshot unless a newer one is there."""
        with translated():
            for stored in stored_events:
                stream = self.layout.checked_stream(stored.originator_id)
                self.log.snapshots.save(stream, Snapshot(stored.originator_version, _MARK + stored.topic, stored.state))
        return None

    def select_events(
        self, originator_id: UUID | str, *, gt: int | None = None, lte: int | None = None, desc: bool = False, limit: int | None = None
    ) -> Sequence[StoredEvent]:
        """The snapshot, if it is within ``gt < version <= lte``."""
        stream = self.layout.stream(originator_id)
        with translated():
            found = self.log.snapshots.load([stream]).get(stream)
        if found is None or not found.fingerprint.startswith(_MARK) or limit == 0:
            return []
        if (gt is not None and found.version <= gt) or (lte is not None and found.version > lte):
            return []
        return [StoredEvent(originator_id, found.version, found.fingerprint.removeprefix(_MARK), found.data)]
