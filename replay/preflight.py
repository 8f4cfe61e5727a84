"""Whether the runs that are under way now would go on under other code: said before it is deployed (S-7.6).

A suspended run of linear code is run again from its first line when it is resumed, so everything it did until then is
held against the new code here, exactly as the worker will. What it does after that nobody can know. A run of the
explicit style is called anew and has no past to run again, but for the turn that is under way.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from ..agents.app import App, runtime_codec
from ..agents.definitions import Definitions
from ..agents.errors import AgentError, ImpossibleHistory
from ..agents.lifecycle import ActivationState, IntentState
from ..agents.listing import standing
from ..agents.run import CONCURRENT, Activation, Intent, RunState
from ..agents.streams import Folder, StreamState
from ..agents.tools import bind_arguments
from ..eventlog.errors import LogError, Undecodable
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .errors import BrokenHistory
from .holes import whole
from .replays import runs
from .rerun import Rerun, describe_drift, rerun_turn

_LOOKED_AT: Final = 64
_OVER: Final = frozenset({"completed", ""})
_UNDER_WAY: Final = frozenset({ActivationState.SUSPENDED, ActivationState.RESUMABLE})
_BEYOND_GUARDS: Final = frozenset({"InputRefused", "DefinitionError"})
"""Failures by their type's name that no branch in the code avoids."""


class Outlook(enum.Enum):
    """What becomes of a run."""

    SAFE = "safe"
    #: It leaves its path at a place that it had passed before: a ``ctx.patched`` there keeps it on the old one.
    PATCH = "needs patch"
    DIVERGES = "will diverge"


@attrs.frozen
class RunOutlook:
    """One open activation under other code."""

    stream: str
    seq: int
    #: How it stands: suspended, resumable or queued.
    state: str
    #: Turns that it has committed.
    turns: int
    outlook: Outlook
    #: Where it leaves its path, in words; empty when it does not.
    place: str = ""
    recorded: str = ""
    decided: str = ""
    field: str = ""
    #: What else is to be said.
    remark: str = ""


@attrs.frozen
class StreamOutlook:
    """The runs under way in one stream; none for one in which nothing is."""

    stream: str
    runs: tuple[RunOutlook, ...] = ()
    #: Why nothing can be said; empty when it can.
    reason: str = ""


def preflight_all(log: EventLog, app: App, streams: Iterable[str] | None = None) -> Iterator[StreamOutlook]:
    """The runs under way in ``streams``, or in the whole log, as they come; a stream without any is told without runs.

    Nothing is called and nothing written. Not to be called while an event loop runs in the same thread.
    """
    folders = {name: Folder(definitions) for name, definitions in app.definitions.items()}
    codec = runtime_codec()
    with asyncio.Runner() as runner:
        for stream in runs(log, app, log.streams()) if streams is None else streams:
            definitions = app.definitions.get(category_of(stream))
            beside = definitions is not None and definitions.agent.while_suspended == CONCURRENT  # one may hide behind the end of another
            if not beside and standing(codec, list(log.read(stream, backwards=True, limit=_LOOKED_AT))) in _OVER:
                yield StreamOutlook(stream)
                continue
            yield runner.run(_stream(log, definitions, folders, stream))


async def _stream(log: EventLog, definitions: Definitions | None, folders: dict[str, Folder], stream: str) -> StreamOutlook:
    """Never waits; a coroutine because agent code may ask for the running loop."""
    if definitions is None:
        return StreamOutlook(stream, reason=f"the app has no agent {category_of(stream)!r}; it has: {', '.join(sorted(folders))}")
    try:
        state = _folded(log, folders[category_of(stream)], stream)
    except (BrokenHistory, Undecodable, ImpossibleHistory) as problem:
        return StreamOutlook(stream, reason=f"its history cannot be folded: {problem}")
    try:
        return StreamOutlook(stream, tuple(_run(log, definitions, state, each) for each in state.run.open.values() if _is_under_way(each)))
    finally:
        for started in asyncio.all_tasks() - {asyncio.current_task()}:
            started.cancel()


def _folded(log: EventLog, folder: Folder, stream: str) -> StreamState:
    state = folder.restore(stream, log.snapshots.load([stream]).get(stream))
    for rows in whole(stream, log.rows(stream, after=state.version), state.version):
        folder.fold(state, rows)
    return state


def _is_under_way(activation: Activation) -> bool:
    return activation.state in _UNDER_WAY or (activation.state is ActivationState.QUEUED and activation.turn_now > 0)


def _run(log: EventLog, definitions: Definitions, state: StreamState, activation: Activation) -> RunOutlook:
    base = RunOutlook(state.stream, activation.seq, activation.state.value, activation.turns, Outlook.SAFE)
    lost = _lost_effect(definitions, state.run, activation)
    if lost:
        return attrs.evolve(base, outlook=Outlook.DIVERGES, place=f"activation {activation.seq}", remark=lost)
    if not activation.is_linear and not activation.turn_now:
        return attrs.evolve(base, remark="" if activation.turns else "it begins anew")
    seen = activation.turn_seen if activation.turn_now else state.version
    now = activation.turn_now or log.clock()
    turn = rerun_turn(definitions, state.run, activation, state.begun_with(activation), state.stream, now, seen, None, log)
    return _judged(base, activation, turn)


def _lost_effect(definitions: Definitions, run: RunState, activation: Activation) -> str:
    """An effect that is still to be carried out and that the code has no way to carry out."""
    for intent in (run.intents[each] for each in activation.intents if each in run.intents):
        if intent.state is not IntentState.SETTLED and (why := _refused(definitions, intent)):
            return f"intent {intent.intent_id} ({intent.tool}) is open, and would be settled as REJECTED: {why}"
    return ""


def _refused(definitions: Definitions, intent: Intent) -> str:
    found = definitions.tools.get(intent.tool)
    if found is None:
        return "the app has no such tool"
    if not found.side_effect:
        return "the tool only reads now"
    try:
        bind_arguments(definitions.codec, found, intent.args)
    except (LogError, AgentError) as problem:
        return f"{problem!s:.300}"
    return ""


def _judged(base: RunOutlook, activation: Activation, turn: Rerun) -> RunOutlook:
    gone = activation.patches - turn.guards_met
    if turn.drift is not None:
        found = describe_drift(turn.drift)
        where = f"step {found.step}" if found.step >= 0 else found.subject
        subject = f" ({found.subject})" if found.step >= 0 and found.subject else ""
        past = _is_past(activation, found.entry)
        told = attrs.evolve(base, place=f"activation {base.seq}, {where}{subject}", recorded=found.recorded, decided=found.decided, field=found.field)
        if past and gone:
            return attrs.evolve(told, outlook=Outlook.PATCH, remark=f"it had passed the guard {_named(gone)} the new way, and the code does not ask for it")
        remark = "" if past else "the turn under way has its answers already, and a guard would take the new path"
        return attrs.evolve(told, outlook=Outlook.PATCH if past else Outlook.DIVERGES, remark=remark)
    if turn.raised is None:
        return base
    failure = f"{type(turn.raised).__name__}: {turn.raised!s:.300}"
    frontier = (activation.step, activation.index)
    past = activation.is_linear and (turn.position < frontier or (turn.position == frontier and activation.state is ActivationState.SUSPENDED))
    if not past:
        return attrs.evolve(base, remark=f"its next turn fails with {failure}")
    outlook = Outlook.DIVERGES if type(turn.raised).__name__ in _BEYOND_GUARDS else Outlook.PATCH
    step, index = turn.position
    return attrs.evolve(
        base, outlook=outlook, place=f"activation {base.seq}, step {step}, read {index}", recorded="the turn went on", decided=f"it fails with {failure}"
    )


def _is_past(activation: Activation, entry: tuple[str, int]) -> bool:
    """Whether a committed turn had passed there: only then does a guard lead the old way."""
    kind, number = entry
    if not activation.is_linear:
        return False
    if kind == "read":
        return number < activation.index
    return kind in ("turn", "event") or number < activation.step


def _named(names: Iterable[Any]) -> str:
    return ", ".join(f"ctx.patched({each!r})" for each in sorted(names))


@attrs.define
class Counts:
    """Runs by what becomes of them, and streams of which nothing can be said."""

    safe: int = 0
    patch: int = 0
    diverges: int = 0
    cannot: int = 0

    def add(self, found: StreamOutlook) -> None:
        """Count one stream's runs."""
        self.cannot += bool(found.reason)
        for each in found.runs:
            self.safe += each.outlook is Outlook.SAFE
            self.patch += each.outlook is Outlook.PATCH
            self.diverges += each.outlook is Outlook.DIVERGES


@attrs.define
class PreflightSummary(Counts):
    """The sum of many streams, in all and by agent."""

    agents: dict[str, Counts] = attrs.field(factory=dict)

    def add(self, found: StreamOutlook) -> None:
        """Count one stream's runs."""
        Counts.add(self, found)
        if found.runs or found.reason:
            self.agents.setdefault(category_of(found.stream), Counts()).add(found)

    @property
    def exit_code(self) -> int:
        """0: every run is safe. 1: one is not. 3: none is in danger as far as can be said, but a stream could not be looked at."""
        return 1 if self.patch or self.diverges else 3 if self.cannot else 0
