"""A log as a test looks at it: every stream's fold, brought up to date when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ...eventlog.errors import LogError
from ...eventlog.log import EventLog
from ...eventlog.names import category_of, stream_name
from .. import facts
from ..app import App
from ..errors import ImpossibleHistory
from ..firing import CRON
from ..lifecycle import ActivationState
from ..run import Activation, RunState
from ..streams import Folder, StreamState

_SUSPENDED: Final = ActivationState.SUSPENDED
_RUNNABLE: Final = frozenset({ActivationState.QUEUED, ActivationState.RESUMABLE})


class Record:
    """Reads; never writes."""

    def __init__(self, app: App, log: EventLog) -> None:
        self._app, self._log = app, log
        self._folders = {name: Folder(each) for name, each in app.definitions.items()}
        self._folds: dict[str, StreamState] = {}

    def fold(self, agent: str, key: str) -> StreamState:
        """A key's fold; raises ``DefinitionError`` for an agent the app does not have."""
        self._app.agent(agent)
        return self._fold(stream_name(agent, key))

    def _fold(self, stream: str) -> StreamState:
        folder = self._folders[category_of(stream)]
        state = self._folds.get(stream)
        if state is None:
            state = self._folds[stream] = folder.empty(stream)
        return folder.fold(state, self._log.rows_of({stream: state.version}).get(stream, []))

    def events(self, stream: str) -> list[Any]:
        """Everything on a stream, decoded, oldest first."""
        return [self._app.codec.decode_stored(stored) for stored in self._log.read(stream)]

    def output(self, agent: str, key: str) -> Any:
        """What the key's last activation ended with; raises ``AssertionError`` saying where it stands when none has."""
        __tracebackhide__ = True  # pytest shows the line of the test instead
        run = self.fold(agent, key).run
        stream = stream_name(agent, key)
        ended = [fact for fact in self.events(stream) if isinstance(fact, facts.Completed)]
        if run.parked:
            parked = run.parked[-1]
            assert parked.last_failure is not None
            raise AssertionError(
                f"{stream}: activation {parked.seq} is parked after {parked.failures} attempts: {parked.last_failure.type}: {parked.last_failure.message}"
            )
        if run.blocked:
            raise AssertionError(f"{stream} is blocked: {run.blocked}")
        if ended:
            return ended[-1].output
        if run.current is None:
            raise AssertionError(f"{stream}: nothing was sent to it")
        raise AssertionError(f"{stream}: activation {run.current.seq} is {run.current.state.value}; it waits for {', '.join(run.current.waits) or 'its turn'}")

    def next_moment(self, *, past_deadlines: bool) -> int | None:
        """When the next turn is due, in µs, later than now. Activations that wait for somebody outside count only with
        ``past_deadlines``; a schedule's moment counts when there is a turn behind it, or with ``past_deadlines``.
        """
        now = self._log.clock()
        moments = [at for state in self._folded() for at in self._moments(state.run, past_deadlines) if at > now]
        cron = self._log.schedule.next_wake(CRON)
        if cron is not None and cron > now and (moments or past_deadlines):
            moments.append(cron)
        return min(moments, default=None)

    def _moments(self, run: RunState, past_deadlines: bool) -> Iterable[int]:
        if run.blocked:
            return
        for each in run.waiting():
            if past_deadlines or not self._waits_outside(each, set()):
                yield each.deadline
                yield from (at for timer, at in each.timers.items() if timer in each.waits)
        current = run.current
        if current is not None and current.state in _RUNNABLE:
            yield current.retry_at

    def _folded(self) -> Iterable[StreamState]:
        for stream in self._log.streams():
            if category_of(stream) in self._folders:
                try:
                    yield self._fold(stream)
                except (LogError, ImpossibleHistory):  # the worker blocks it, and says so on the stream
                    continue

    def _waits_outside(self, activation: Activation, seen: set[str]) -> bool:
        """Whether only somebody outside can end its wait in good time: an approval, a signal, or a child that waits so."""
        if activation.state is not _SUSPENDED:
            return False
        for wait in activation.waits:
            asked = activation.approvals.get(wait)
            if wait.startswith("signal-") or (asked is not None and asked.decided is None and wait in activation.timers):
                return True
        for child, wait in activation.children.items():
            stream = child.partition("|")[0]
            if wait in activation.waits and wait not in activation.outcomes and stream not in seen and category_of(stream) in self._folders:
                current = self._fold(stream).run.current
                if current is not None and self._waits_outside(current, {*seen, stream}):
                    return True
        return False
