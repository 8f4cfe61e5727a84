"""``merge``: read both sides, decide, check that the source still replays with what is brought, and write all of it at once.

The source is written to at the very version it was read at, and each outcome under the one event id that an intent's end
has: whoever begins an attempt or settles it meanwhile wins, and nothing is written here (S-6.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs

from ...agents.app import App
from ...agents.intents import settlement_event_id
from ...agents.queues import EFFECTS, TURNS
from ...agents.run import next_attention
from ...agents.streams import StreamState
from ...eventlog.clock import SECOND
from ...eventlog.errors import LogError
from ...eventlog.events import NewEvent
from ...eventlog.log import AppendRequest, Claim, EventLog, StreamAppend, Wake
from ..bundles.layout import FORMAT, VERSION, Manifest
from ..bundles.log import BundleLog
from ..errors import MergeRefused
from ..fold import folder_for, head_of
from ..holes import check_whole
from ..replays import replay_stream
from ..verdicts import Verdict
from .begun import ForkBegun, ForkMerged, begun, copied_by, fork_codec, is_merged, place_of
from .identity import renamed
from .loaded import check_emitted
from .merging import Plan, decide
from .pieces import Piece
from .writing import FOR_EVER

_MERGER: Final = "fork: merged"
"""Who holds the lease of the effects of a fork that was merged."""
_PATIENCE: Final = 60 * SECOND
_MERGED: Final = bytes(15) + b"\1"


@attrs.frozen(eq=False)
class Merge:
    """A plan and what it was made from."""

    record: ForkBegun
    plan: Plan
    #: Versions both sides were read at.
    source_head: int
    fork_head: int
    #: The source with what is brought.
    state: StreamState
    #: Ids of the source's intents → what they are called on the fork.
    ids: dict[str, str]


def plan_merge(source: EventLog, fork: EventLog, app: App, stream: str) -> Merge:
    """What merging the fork ``stream`` of the log ``fork`` into its source, which stands in the log ``source``, comes to. Reads only.

    Raises ``BrokenHistory`` for a side with a hole; ``MergeRefused`` when the source is not the one it was forked from, when
    the fork's history was changed before the version it was forked at, or when the source would not replay afterwards;
    ``ForkRefused`` for a stream that is no fork.
    """
    record = begun(fork, stream)
    if is_merged(fork, stream):
        raise MergeRefused(f"{stream} was merged into {record.source} before, and has gone on no more since. Look at both: eventlog show {stream}")
    head_of(source, record.source)
    ours, theirs = _whole(source, record.source), _whole(fork, stream)
    ids: dict[str, str] = {}
    _check_base(record, ours, theirs)
    if record.live:
        theirs, ids = renamed(app.codec, theirs, record.source)
    base = record.upto + 1
    plan = decide(app.codec, ours[:base], ours[base:], theirs[base:], stream=record.source, live=record.live, copied=copied_by(fork, stream))
    folder = folder_for(app, record.source)
    together = [*ours, *plan.bring]
    if plan.bring:
        check_emitted(source, app.codec, plan.bring)
        _check_replays(app, source, record.source, together)
    state = folder.fold(folder.empty(record.source), [piece.row(version) for version, piece in enumerate(together)])
    return Merge(record, plan, len(ours) - 1, len(theirs) - 1, state, ids)


def _whole(log: EventLog, stream: str) -> list[Piece]:
    events = list(log.read(stream))
    check_whole(stream, events, "nothing is merged")
    return [Piece.of(event) for event in events]


def _check_base(record: ForkBegun, ours: Sequence[Piece], theirs: Sequence[Piece]) -> None:
    if len(ours) <= record.upto or ours[record.upto].event_id != record.base:
        raise MergeRefused(f"{record.source} in this log is not the stream that {record.stream} was forked from: its version {record.upto} is another event.")
    if record.first <= record.upto or len(theirs) <= record.upto:
        raise MergeRefused(
            f"{record.stream} has another past than its source from version {record.first} on ({'; '.join(record.edits) or 'its history is shorter'}): "
            "what was decided there was decided about something that has not happened. It can be looked at, and not brought back."
        )


def _check_replays(app: App, source: EventLog, stream: str, together: Sequence[Piece]) -> None:
    events = {stream: [piece.stored(stream, version) for version, piece in enumerate(together)]}
    for each in {*source.streams()} - {stream} if any(piece.type == "aggregate.loaded" for piece in together) else ():
        events[each] = list(source.read(each))
    found = replay_stream(BundleLog("merged", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), events, {}), app, stream)
    if found.verdict is not Verdict.SAME:
        said = (
            found.reason if found.divergence is None else f"version {found.divergence.version}, {found.divergence.place}: recorded {found.divergence.recorded}"
        )
        raise MergeRefused(f"With what {stream}'s fork decided, the source would not replay ({said:.400}): the code decides otherwise under the source's name.")


def carry_out(merge: Merge, source: EventLog, fork: EventLog | None, app: App, *, by: str) -> int:
    """Write what is planned; how many events the source got. ``fork`` is the fork's log, the same object when it is the same log.

    A live fork goes on no more afterwards: nothing wakes it, and the lease of its effects is held for ever. Both leases are
    taken before anything is written, so that nobody decides a turn of it or carries out an effect of it meanwhile. ``fork`` may
    be ``None`` for one that is not live.
    Raises ``MergeRefused`` for conflicts, and when either side went on meanwhile or is being worked on.
    """
    plan, record = merge.plan, merge.record
    if plan.conflicts:
        raise MergeRefused(f"{record.stream} is in conflict with its source: {plan.conflicts[0].what}: {plan.conflicts[0].why}. Nothing was written.")
    wake = Wake(TURNS, next_attention(merge.state.run))
    parts = [StreamAppend(record.source, [piece.new() for piece in plan.bring], merge.source_head, (wake,))] if plan.bring else []
    if not record.live:
        _append(source, parts, record)
        return len(plan.bring)
    if fork is None:
        raise MergeRefused(f"{record.stream} is live, so its log must be open for writing: it is to go on no more.")
    told = fork_codec().stage(ForkMerged(record.source, merge.source_head + 1, len(plan.bring), by), event_id=_MERGED)
    ended = StreamAppend(place_of(record.stream), [told], 0)
    known = {event.event_id for event in fork.read(record.stream, after=record.upto, payloads=False)}  # of a merge that was killed behind them
    ends = [each for each in _ends(merge, app, by) if each.event_id not in known]
    ending = StreamAppend(record.stream, ends, merge.fork_head, [Wake(TURNS, None)])
    with _held(fork, record.stream):
        if fork is source:
            _append(source, [*parts, ending, ended], record)
        else:  # the fork first, so that nothing is carried out there once it is the source's
            _append(fork, [ending], record)
            _append(source, parts, record)
            _append(fork, [ended], record)
    return len(plan.bring)


@contextmanager
def _held(log: EventLog, stream: str) -> Iterator[None]:
    """Nobody else has the stream in hand; its effects for ever, unless the block raises.

    For ever only when all is done: a process that is killed in the middle leaves a merge that somebody can finish.
    """
    until = (now := log.clock()) + _PATIENCE
    claims: list[Claim] = []
    try:
        for queue, what in ((TURNS, "a worker is deciding a turn of it"), (EFFECTS, "an effector is carrying out an effect of it")):
            token = log.schedule.acquire(queue, (stream,), _MERGER, now=now, until=until).get(stream)
            if token is None:
                raise MergeRefused(
                    f"{stream} cannot be merged at this moment: {what}, or somebody else merges it, or was killed at that less than a minute ago. "
                    "Nothing was written. Try again."
                )
            claims.append(Claim(queue, stream, token, None))
        yield
    except BaseException:
        log.schedule.release(claims)
        raise
    log.schedule.renew(claims[1:], until=FOR_EVER)
    log.schedule.release(claims[:1])


def _ends(merge: Merge, app: App, by: str) -> list[NewEvent]:
    made = []
    for each in merge.plan.settle_fork:
        settled: Any = each.settled
        intent_id = merge.ids[each.intent_id]
        made.append(app.codec.stage(attrs.evolve(settled, intent_id=intent_id, settled_by=by), event_id=settlement_event_id(intent_id, 0)))
    return made


def _append(log: EventLog, parts: list[StreamAppend], record: ForkBegun) -> None:
    if not parts:
        return
    (outcome,) = log.append_batch([AppendRequest(parts)])
    if isinstance(outcome, LogError):
        raise MergeRefused(f"{record.stream} or {record.source} went on while they were merged, so nothing was written: {outcome} Try again.") from outcome
