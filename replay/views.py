"""What a turn may have seen of the outcomes that arrived while it was being decided.

A turn works on the fold as it was when its stream was loaded, and its append is made behind whatever arrived since
(S-3.4). Which arrivals came before the load is not recorded. Almost nothing depends on it, for what a wait was over
with is frozen; but ``ctx.outcome``, the number of attempts of an intent that timed out, and the intents a new
suspension still waits for do. So a turn that comes out differently is tried again as of each moment it may have been
loaded at; one of them must reproduce it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..agents.run import Intent, RunState

MOST_VIEWS: Final = 64
"""Moments tried for one turn."""


@attrs.define
class Arrivals:
    """Changes of intents since the current activation became runnable, each with the intent as it was before."""

    before: list[tuple[str, Intent]] = attrs.field(factory=list)
    #: How many there were when the turn's first journal entry was recorded: the likeliest moment.
    at_first_entry: int = -1

    def clear(self) -> None:
        """A new turn begins, and everything recorded so far lies before its load."""
        self.before.clear()
        self.at_first_entry = -1

    def note(self, intent: Intent) -> None:
        """``intent`` is about to change."""
        self.before.append((intent.intent_id, attrs.evolve(intent)))

    def entry(self) -> None:
        """A journal entry was recorded: its turn had been loaded by then."""
        if self.at_first_entry < 0:
            self.at_first_entry = len(self.before)

    def views(self, run: RunState) -> Iterator[RunState]:
        """``run`` as it was after each of the arrivals, the likeliest moment first."""
        total = len(self.before)
        likely = self.at_first_entry if self.at_first_entry >= 0 else total
        order = dict.fromkeys([likely, total, 0, *range(total - 1, 0, -1)])
        for count in list(order)[:MOST_VIEWS]:
            yield self._as_of(run, count)

    def _as_of(self, run: RunState, count: int) -> RunState:
        if count == len(self.before):
            return run
        # Backwards, so that of several changes of one intent the earliest is undone last.
        undone = dict(reversed(self.before[count:]))
        return attrs.evolve(run, intents=run.intents | undone)
