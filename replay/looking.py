"""Who runs the code that is looked at: this very process, or processes of their own. The commands know no difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import attrs
import msgspec

from ..agents.app import App
from ..eventlog.log import EventLog
from .allowing import Allowance
from .child import Order
from .preflight import StreamOutlook, preflight_all
from .projected import ProjectionReplay, replay_projections
from .replays import replay_all, runs
from .revisions import Code
from .sharing import Died, check_code, shared_out
from .verdicts import StreamReplay, Verdict


class Looking(Protocol):
    """What the commands ask for. ``only_runs``: streams that no agent's code wrote are passed over."""

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamReplay]: ...
    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamOutlook]: ...
    def projections(self) -> Iterator[ProjectionReplay]: ...


@attrs.frozen
class Here:
    """In this process, with an app that is loaded already."""

    log: EventLog
    app: App
    allowances: tuple[Allowance, ...] = ()

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamReplay]:
        """Verdicts, in the order of ``streams``. Raises ``DefinitionError`` for a category that the app has no agent for."""
        return replay_all(self.log, self.app, self._runs(streams, only_runs, category), allowances=self.allowances)

    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamOutlook]:
        """Outlooks, in the order of ``streams``; errors as in ``replayed``."""
        return preflight_all(self.log, self.app, self._runs(streams, only_runs, category))

    def projections(self) -> Iterator[ProjectionReplay]:
        """The app's projections against the log's views."""
        return replay_projections(self.log, self.app)

    def _runs(self, streams: Iterable[str], only_runs: bool, category: str | None) -> Iterable[str]:
        if category is not None:
            self.app.agent(category)
        return runs(self.log, self.app, streams) if only_runs else streams


@attrs.frozen
class Elsewhere:
    """In other processes, which load the app themselves."""

    order: Order
    children: int

    @staticmethod
    def make(verb: str, source: str, app: str, code: Code | None, children: int, allowances: tuple[Allowance, ...] = ()) -> Elsewhere:
        """``verb``: ``replay`` or ``preflight``; ``code`` ``None``: as it is found from here."""
        paths, checkout = (code.paths, code.checkout) if code is not None else ((), "")
        return Elsewhere(Order(verb, source, app, paths, checkout, allowances), children)

    def check(self) -> list[str]:
        """Load the app once; modules that are not of the code that was asked for. Raises ``CodeUnusable``."""
        return check_code(self.order)

    def replayed(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamReplay]:
        """Verdicts, in the order of ``streams``. A process that died is a verdict on its stream."""
        for stream, found in self._asked(streams, only_runs):
            if isinstance(found, Died):
                yield StreamReplay(stream, Verdict.CANNOT, reason=found.reason)
            elif found is not None:
                yield msgspec.convert(found, StreamReplay)

    def outlooks(self, streams: Iterable[str], *, only_runs: bool, category: str | None) -> Iterator[StreamOutlook]:
        """Outlooks, in the order of ``streams``."""
        for stream, found in self._asked(streams, only_runs):
            if isinstance(found, Died):
                yield StreamOutlook(stream, reason=found.reason)
            elif found is not None:
                yield msgspec.convert(found, StreamOutlook)

    def projections(self) -> Iterator[ProjectionReplay]:
        """The projections of the code against the log's views."""
        for _, found in shared_out(attrs.evolve(self.order, verb="projections"), ["*"], 1):
            if isinstance(found, Died):
                yield ProjectionReplay("*", Verdict.CANNOT, reason=found.reason)
            else:
                yield from msgspec.convert(found, list[ProjectionReplay])

    def _asked(self, streams: Iterable[str], only_runs: bool) -> Iterator[tuple[str, Any]]:
        return shared_out(attrs.evolve(self.order, only_runs=only_runs), streams, self.children)
