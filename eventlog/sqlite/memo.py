"""What the writer remembers between batches, so that a batch asks the file nothing it already knows.

Heads, leases and the last position are true as long as nobody else has written: SQLite's ``data_version`` says so at the
start of every write, and ``forget`` is called when it moved, and after every rollback. Ids of streams are for ever.
"""

from __future__ import annotations

from typing import Final

import attrs

_MOST_ENTRIES: Final = 100_000


@attrs.define(slots=True)
class Memo:
    """Guarded by the write lock, except ``ids``, which readers may look into and add to."""

    #: Stream name → id, of committed streams only.
    ids: dict[str, int] = attrs.field(factory=dict)
    #: Stream name → version of its last event.
    heads: dict[str, int] = attrs.field(factory=dict)
    #: (queue, name) → token under which it is held.
    leases: dict[tuple[str, str], int] = attrs.field(factory=dict)
    #: Position of the last event; ``None`` when it has to be asked for.
    position: int | None = None

    def forget(self) -> None:
        """Drop everything that another writer may have changed."""
        self.heads.clear()
        self.leases.clear()
        self.position = None

    def trim(self) -> None:
        """Stay bounded however many streams there are."""
        if len(self.ids) > _MOST_ENTRIES:
            self.ids.clear()
        if len(self.heads) > _MOST_ENTRIES:
            self.heads.clear()
        if len(self.leases) > _MOST_ENTRIES:
            self.leases.clear()
