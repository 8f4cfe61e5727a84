"""The aggregate as it was kept in a snapshot against the same as today's code folds it. Pure.

Decisions are compared turn by turn. A changed applier whose state no recorded decision depended on is only found here,
and only where there is a snapshot: a worker makes one every so many events, and a bundle made with an app has one at its end.
"""

from __future__ import annotations

from typing import Any

import attrs

from ..agents.compare import Difference, first_difference
from ..agents.definitions import Definitions
from ..agents.streams import StreamState
from ..eventlog.errors import LogError
from ..eventlog.events import Row
from ..eventlog.log import Snapshot
from .verdicts import Divergence, Kind, StateCheck


@attrs.define(eq=False)
class Kept:
    """A stream's snapshot, which is compared once, where the walk comes to its version."""

    definitions: Definitions
    #: ``None`` when there is none, or when the walk is past it.
    snapshot: Snapshot | None
    #: It is of a plain aggregate: its state alone.
    plain: bool = False
    check: StateCheck = StateCheck.NOT_COMPARED

    def __attrs_post_init__(self) -> None:
        if self.definitions.agent.state is None:
            self.check = StateCheck.NO_STATE

    def is_due(self, version: int) -> bool:
        """Whether the state is to be compared when ``version`` is folded."""
        return self.snapshot is not None and version >= self.snapshot.version

    def compared(self, folded: StreamState, row: Row) -> Divergence | None:
        """Where the state behind ``row`` and the kept one differ. A snapshot of a version that was passed over says nothing."""
        snapshot, self.snapshot = self.snapshot, None
        if snapshot is None or folded.version != snapshot.version:
            return None
        compared, found = compare_kept(self.definitions, snapshot, folded.state, plain=self.plain)
        if compared:
            self.check = StateCheck.COMPARED
        if found is None:
            return None
        return Divergence(folded.stream, row[0], row[1], Kind.STATE, -1, -1, -1, found.left, found.right, found.path, "snapshot")


def compare_kept(definitions: Definitions, snapshot: Snapshot, state: Any, *, plain: bool = False) -> tuple[bool, Difference | None]:
    """Whether the two could be compared, and the first field that both have and that is not the same, its path beginning with ``state``.

    Fields that only one of the two has are passed over: a field may be added or taken away. So is a snapshot that cannot
    be read, as it is when it is loaded (S-8.2).
    """
    kind = definitions.agent.state
    if kind is None:
        return False, None
    codec = definitions.codec
    try:
        kept = snapshot.data if plain else codec.decode_value(snapshot.data, dict[str, bytes]).get("state")
        now = codec.encode_value(state, kind)
        if kept is None or kept == now:
            return kept is not None, None
        was, decided = codec.tree(kept), codec.tree(now)
    except LogError:
        return False, None
    return True, shared_difference(was, decided)


def shared_difference(was: Any, now: Any) -> Difference | None:
    """The first field of two states that both have and that is not the same; the states as trees."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return None
    shared = was.keys() & now.keys()
    found = first_difference({name: was[name] for name in shared}, {name: now[name] for name in shared}, "state")
    return found if found.path else None
