"""One history folded by two codes: where their states part.

Decisions are compared with what is recorded. A state is recorded only where a worker kept it, so a changed applier is
compared with the code before the change: each code in a process of its own, both folding the same stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

import attrs

from ..agents.app import App, runtime_codec
from ..agents.compare import Difference
from ..agents.errors import ImpossibleHistory
from ..agents.streams import Folder
from ..eventlog.errors import Undecodable
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .aggregates import definitions_for
from .allowing import Allowance, allowance_for
from .errors import BrokenHistory
from .holes import whole
from .kept import shared_difference
from .verdicts import Divergence, Excused, Kind, StateCheck, StreamReplay, Verdict

SUBJECT: Final = "against"
"""The subject of a divergence between two codes: neither side of it is recorded."""


@attrs.frozen
class Folded:
    """A stream's aggregate under one code, as bytes in which only its values are left."""

    state: bytes | None = None
    #: Why it cannot be folded; empty when it can.
    reason: str = ""


def folded(log: EventLog, app: App, stream: str, upto: int) -> Folded:
    """The aggregate of ``stream`` at version ``upto``. What cannot be folded is told as a reason."""
    definitions = definitions_for(app, category_of(stream))
    if definitions is None:
        return Folded(reason=f"the app has no agent {category_of(stream)!r}")
    kind = definitions.agent.state
    if kind is None:
        return Folded()
    folder = Folder(definitions)
    state = folder.empty(stream)
    try:
        for rows in whole(stream, log.rows(stream, upto=upto)):
            folder.fold(state, rows)
    except (BrokenHistory, Undecodable, ImpossibleHistory) as problem:
        return Folded(reason=str(problem))
    return Folded(definitions.codec.encode_value(state.state, kind))


class TwoCodes:
    """The code before and the code now; ``with`` ends their processes. Raises ``CodeUnusable`` when one cannot be loaded."""

    def __init__(self, log: EventLog, before: Any, now: Any) -> None:
        """``before``, ``now``: ``Order``s of the verb ``state``."""
        from .sharing import Child

        self._log = log
        self._before = Child(before)
        try:
            self._now = Child(now)
        except BaseException:
            self._before.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self._before.close()
        self._now.close()

    def parting(self, stream: str) -> Divergence | None:
        """The first version from which on the two states differ up to the end, and the field; ``None`` when they end the same."""
        high = self._log.head(stream)
        found = self._differ(stream, high)
        if found is None:
            return None
        low = -1
        while low < high - 1:
            middle = (low + high) // 2
            earlier = self._differ(stream, middle)
            if earlier is None:
                low = middle
            else:
                high, found = middle, earlier
        event = next(iter(self._log.read(stream, after=high - 1, limit=1, payloads=False)))
        return Divergence(stream, high, event.type, Kind.STATE, -1, -1, -1, found.left, found.right, found.path, SUBJECT)

    def _differ(self, stream: str, version: int) -> Difference | None:
        before, now = (child.folded(stream, version) for child in (self._before, self._now))
        if before.reason or now.reason:
            return None if before.reason == now.reason else Difference("state", before.reason or "it is folded", now.reason or "it is folded")
        if before.state is None or now.state is None or before.state == now.state:
            return None
        tree = runtime_codec().tree
        return shared_difference(tree(before.state), tree(now.state))


def held_against(two: TwoCodes, replayed: StreamReplay, allowances: Sequence[Allowance] = ()) -> StreamReplay:
    """``replayed``, but diverged where its decisions are the same and the states part, unless that is allowed."""
    if replayed.verdict not in (Verdict.SAME, Verdict.ALLOWED) or replayed.state is StateCheck.NO_STATE:
        return replayed
    found = two.parting(replayed.stream)
    replayed = attrs.evolve(replayed, state=StateCheck.COMPARED)
    if found is None:
        return replayed
    allowance = allowance_for(allowances, found)
    if allowance is None:
        return attrs.evolve(replayed, verdict=Verdict.DIVERGED, divergence=found)
    return attrs.evolve(replayed, verdict=Verdict.ALLOWED, excused=(*replayed.excused, Excused(allowance.line, found)))
