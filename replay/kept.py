"""The aggregate as a worker kept it in a snapshot against the same as today's code folds it. Pure.

Decisions are compared turn by turn. A changed applier whose state no recorded decision depended on is only found here,
and only where there is a snapshot: a worker makes one every so many events.
"""

from __future__ import annotations

from typing import Any

from ..agents.compare import Difference, first_difference
from ..agents.definitions import Definitions
from ..eventlog.errors import LogError
from ..eventlog.log import Snapshot


def compare_kept(definitions: Definitions, snapshot: Snapshot, state: Any) -> Difference | None:
    """The first field that both have and that is not the same, its path beginning with ``state``; ``None`` when there is none.

    Fields that only one of the two has are passed over: a field may be added or taken away. So is a snapshot that cannot
    be read, as it is when it is loaded (S-8.2).
    """
    kind = definitions.agent.state
    if kind is None:
        return None
    codec = definitions.codec
    try:
        kept = codec.decode_value(snapshot.data, dict[str, bytes]).get("state")
        now = codec.encode_value(state, kind)
        if kept is None or kept == now:
            return None
        was, decided = codec.tree(kept), codec.tree(now)
    except LogError:
        return None
    return shared_difference(was, decided)


def shared_difference(was: Any, now: Any) -> Difference | None:
    """The first field of two states that both have and that is not the same; the states as trees."""
    if not isinstance(was, dict) or not isinstance(now, dict):
        return None
    shared = was.keys() & now.keys()
    found = first_difference({name: was[name] for name in shared}, {name: now[name] for name in shared}, "state")
    return found if found.path else None
