"""One turn run again by the journal, to be stepped through: which versions it spans, what its code did, how it compares."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import attrs

from ...agents.app import App
from ...agents.definitions import Definitions
from ...agents.lifecycle import ActivationState
from ...agents.streams import Folder, StreamState
from ...eventlog.log import EventLog
from ...eventlog.names import category_of
from ..rerun import Rerun, describe_drift, describe_miss, rerun_turn
from ..streams import replay_rows
from ..verdicts import StreamReplay, Verdict
from .watched import Seen, watched

T = TypeVar("T")
_ENDS: Final = frozenset({"activation.suspended", "activation.completed", "activation.continued", "activation.failed"})
_RUNNABLE: Final = frozenset({ActivationState.QUEUED, ActivationState.RESUMABLE})


@attrs.define(eq=False)
class Turn:
    """A turn that was run again."""

    #: Versions from behind the turn before to this one's closing fact; what had arrived in between counts to it.
    first: int
    last: int
    seen: list[Seen]
    #: The verdict; ``None`` for a turn that was never committed.
    replayed: StreamReplay | None
    #: How a turn that was never committed stops, in words.
    stops: str = ""
    #: Where ``step`` stands in ``seen``, once it has begun.
    place: int = 0
    begun: bool = False


def span(log: EventLog, stream: str, version: int) -> tuple[int, int | None]:
    """The turn that the event at ``version`` belongs or leads to: the version of the end before it (-1: none) and of its own.

    The second is ``None`` when no turn has ended since.
    """
    return (
        _ending(log.read(stream, after=-1, upto=version - 1, backwards=True, payloads=False), default=-1),
        _ending(log.read(stream, after=version - 1, payloads=False), default=None),
    )


def _ending(events: Iterator[Any], default: T) -> int | T:
    return next((stored.version for stored in events if stored.type in _ENDS), default)


class _FromHere(Folder):
    """Folds on from a state instead of from nothing."""

    def __init__(self, definitions: Definitions, begun: StreamState) -> None:
        super().__init__(definitions)
        self._begun = begun

    def empty(self, stream: str) -> StreamState:
        return self._begun


def run_again(log: EventLog, app: App, stream: str, version: int, state_at: Callable[[int], StreamState]) -> Turn | None:
    """Run the turn of the event at ``version`` again; ``None`` when no turn has begun there yet.

    ``state_at`` gives the state after a version (-1: of nothing), which nobody else holds.
    """
    before, last = span(log, stream, version)
    definitions, runs = watched(app.definitions[category_of(stream)])
    begun = state_at(before)
    if last is None:
        head = log.head(stream)
        turn = _alone(lambda: _uncommitted(log, definitions, state_at(head)))
        return None if turn is None else Turn(before + 1, head, _chosen(runs(), same=True), None, _how(turn))
    twin = copy.copy(app)
    twin.__dict__["definitions"] = {**app.definitions, category_of(stream): definitions}
    replayed = _alone(lambda: replay_rows(twin, _FromHere(definitions, begun), stream, log.rows(stream, after=before, upto=last), log))
    return Turn(before + 1, last, _chosen(runs(), same=replayed.verdict is Verdict.SAME), replayed)


def _uncommitted(log: EventLog, definitions: Definitions, folded: StreamState) -> Rerun | None:
    activation = folded.run.current
    if activation is None or activation.state not in _RUNNABLE or not activation.turn_now:
        return None
    return rerun_turn(definitions, folded.run, activation, folded.begun_with(activation), folded.stream, activation.turn_now, activation.turn_seen, None, log)


def _how(turn: Rerun) -> str:
    if turn.drift is not None:
        found = describe_drift(turn.drift)
        return f"it leaves the recorded path at {found.subject or f'step {found.step}'}: recorded {found.recorded}, decided {found.decided}"
    if turn.miss is not None:
        return f"it stops at the first step without a recorded answer: {describe_miss(turn.miss, '').decided}"
    return "it would end here" if turn.ended else f"it would fail with {type(turn.raised).__name__}: {turn.raised}"


def _chosen(runs: list[list[Seen]], *, same: bool) -> list[Seen]:
    """Of the times the code was run, as of each moment it may have been loaded at: the one that the verdict speaks of."""
    return (runs[-1] if same else runs[0]) if runs else []


def _alone(run: Callable[[], T]) -> T:
    """``run`` in a thread with an event loop of its own: agent code may ask for the running loop, and a front end may have one here."""

    async def within() -> T:
        try:
            return run()
        finally:
            for started in asyncio.all_tasks() - {asyncio.current_task()}:
                started.cancel()  # before their first step: what agent code starts on the side does not run here

    with ThreadPoolExecutor(1) as one:
        return one.submit(lambda: asyncio.run(within())).result()
