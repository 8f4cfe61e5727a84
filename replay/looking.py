"""Who runs the code that is looked at: processes of their own, so that code that ends its process does not end the answer with it.

Only code that this process has loaded already, as the shell has, runs here: no other process could find it.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from typing import Any, Protocol

import attrs
import msgspec

from ..agents.app import App, no_agent
from ..eventlog.log import EventLog
from .aggregates import categories
from .allowing import Allowance
from .child import Order
from .preflight import StreamOutlook, preflight_all
from .projected import ProjectionReplay, replay_projections
from .replays import replay_all, replayable, runs
from .revisions import Code
from .sharing import Child, Died, shared_out
from .verdicts import StreamReplay, Verdict


class Looking(Protocol):
    """What the commands ask for. ``only_runs``: streams that no agent's code wrote are passed over."""

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamReplay, None, None]: ...
    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamOutlook, None, None]: ...
    def projections(self) -> Iterator[ProjectionReplay]: ...


@attrs.frozen
class Here:
    """In this process, with an app that is loaded already."""

    log: EventLog
    app: App
    allowances: tuple[Allowance, ...] = ()

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamReplay, None, None]:
        """Verdicts, in the order of ``streams``. Raises ``DefinitionError`` for a category of no agent and no aggregate."""
        _check(category, categories(self.app))
        yield from replay_all(self.log, self.app, replayable(self.log, self.app, streams) if only_runs else streams, allowances=self.allowances)

    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamOutlook, None, None]:
        """Outlooks, in the order of ``streams``. Raises ``DefinitionError`` for a category of no agent."""
        _check(category, self.app.agents)
        yield from preflight_all(self.log, self.app, runs(self.log, self.app, streams) if only_runs else streams)

    def projections(self) -> Iterator[ProjectionReplay]:
        """The app's projections against the log's views."""
        return replay_projections(self.log, self.app)


def _check(category: str | None, known: Collection[str]) -> None:
    if category is not None and known and category not in known:
        raise no_agent(category, known)


@attrs.define(eq=False)
class Elsewhere:
    """Processes that load the app themselves. ``only_runs``: streams that no agent's code wrote are passed over. ``close`` it when done."""

    order: Order
    children: int
    #: The child that has loaded the app already and is not given anything yet.
    _ready: Child | None = None
    _agents: tuple[str, ...] = ()
    _projections: bool = True

    @staticmethod
    def make(
        verb: str,
        source: str,
        app: str,
        code: Code | None,
        children: int,
        allowances: tuple[Allowance, ...] = (),
        *,
        only_runs: bool = False,
        debug: bool = False,
    ) -> Elsewhere:
        """``verb``: ``replay`` or ``preflight``; ``code`` ``None``: as it is found from here."""
        paths, checkout = (code.paths, code.checkout) if code is not None else ((), "")
        return Elsewhere(Order(verb, source, app, paths, checkout, allowances, only_runs, debug=debug), children)

    def check(self) -> list[str]:
        """Begin the first process; modules that are not of the code that was asked for. Raises ``CodeUnusable``."""
        self._ready = Child(self.order)
        self._agents, self._projections = tuple(self._ready.agents), self._ready.projections
        return self._ready.beside

    def close(self) -> None:
        """End what was begun."""
        if self._ready is not None:
            self._ready.close()

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamReplay, None, None]:
        """Verdicts, in the order of ``streams``. One that died is a verdict on its stream. Raises ``DefinitionError`` for a category of no agent."""
        _check(category, self._agents)
        for stream, found in self._asked(streams, only_runs):
            if isinstance(found, Died):
                yield StreamReplay(stream, Verdict.CANNOT, reason=found.reason)
            elif found is not None:
                yield msgspec.convert(found, StreamReplay)

    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Generator[StreamOutlook, None, None]:
        """Outlooks, in the order of ``streams``. Raises ``DefinitionError`` for a category of no agent."""
        _check(category, self._agents)
        for stream, found in self._asked(streams, only_runs):
            if isinstance(found, Died):
                yield StreamOutlook(stream, reason=found.reason)
            elif found is not None:
                yield msgspec.convert(found, StreamOutlook)

    def projections(self) -> Iterator[ProjectionReplay]:
        """The projections of the code against the log's views."""
        if not self._projections:
            return
        for _, found in shared_out(attrs.evolve(self.order, verb="projections"), ["*"], 1):
            if isinstance(found, Died):
                yield ProjectionReplay("*", Verdict.CANNOT, reason=found.reason)
            else:
                yield from msgspec.convert(found, list[ProjectionReplay])

    def _asked(self, streams: Iterable[str], only_runs: bool) -> Iterator[tuple[str, Any]]:
        self.order = attrs.evolve(self.order, only_runs=only_runs)
        ready, self._ready = self._ready, None
        if ready is not None and ready.order != self.order:
            ready.close()
            ready = None
        return shared_out(self.order, streams, self.children, ready)
