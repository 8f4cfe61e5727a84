"""What a replay may say of a history in which values were redacted: *same* holds, a difference proves nothing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..eventlog.log import EventLog
from .verdicts import StreamReplay, Verdict

_LOADED = "aggregate.loaded"


def as_far_as_seen(log: EventLog, replayed: StreamReplay) -> StreamReplay:
    """``replayed``, but *cannot* instead of *diverged* where the stream, or one that it loaded, has something redacted."""
    redacted: Mapping[str, frozenset[int]] = getattr(log, "redacted", {})
    if not redacted or replayed.verdict in (Verdict.SAME, Verdict.ALLOWED):
        return replayed
    hidden = sorted(redacted.get(replayed.stream, ()))
    if hidden:
        what = f"{len(hidden)} of its events have values that were redacted, the first at version {hidden[0]}"
    elif any(event.type == _LOADED for event in log.read(replayed.stream, payloads=False)):
        what = "it loaded other streams, and values of this bundle were redacted"
    else:
        return replayed
    found = replayed.divergence
    said = f"It differs at version {found.version} ({found.event})" if found is not None else replayed.reason
    return attrs.evolve(
        replayed, verdict=Verdict.CANNOT, divergence=None, reason=f"{what}, so a difference proves nothing. {said}. Replay it where the log is."
    )
