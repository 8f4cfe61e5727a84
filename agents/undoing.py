"""Undoing what an activation has done: the tools named by ``compensate=``, staged as effects of their own.

There is no rollback across the world. What was done stays on record, and so does what undoes it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import attrs

from .intents import ERROR, OK, UNKNOWN
from .others import OtherSteps
from .outcome import EffectResult
from .run import Intent
from .tools import RESULT, Tool, bind_arguments

_KEY: Final = "undo:"
_MAY_HAVE_HAPPENED: Final = (OK, ERROR, UNKNOWN)


class Undoing(OtherSteps):
    """What agents can do about what they did."""

    def compensate(self, *, uncertain: bool = False, ttl: timedelta | None = None) -> list[str]:
        """Stage the undoing of this activation's effects, the newest first, and return its intent ids.

        Undone is every effect whose tool names a ``compensate=`` tool and whose outcome, as this turn sees it, is OK; with
        ``uncertain`` also ERROR and UNKNOWN, which may have happened, so that the tool must bear undoing what was not done.
        Each effect is undone once, however often this is called. An effect without an outcome is left alone: wait for it
        first. The undoing tool is given the arguments of the effect that it has parameters for, and as ``result`` what the
        effect returned.
        """
        staged = []
        for intent_id in reversed(self._activation.intents):
            intent, outcome = self._run.intents.get(intent_id), self.outcome(intent_id)
            if intent is None or outcome is None or outcome.status not in (_MAY_HAVE_HAPPENED if uncertain else (OK,)):
                continue
            done = self._definitions.tools.get(intent.tool)
            if done is not None and done.compensate is not None:
                undo = self._definitions.tools.named(done.compensate.name)
                staged.append(self.act(undo, self._undoing(undo, intent, outcome), key=_KEY + intent_id, ttl=ttl))
        return staged

    def _undoing(self, undo: Tool, intent: Intent, outcome: EffectResult) -> dict[str, Any]:
        plain = {name: value for name, value in intent.args.items() if name in undo.parameters}
        wanted = {field.name for field in attrs.fields(undo.arguments) if field.default is attrs.NOTHING or outcome.ok}
        if RESULT in undo.parameters & wanted:
            plain[RESULT] = outcome.value if outcome.ok else None
        return bind_arguments(self._definitions.codec, undo, plain)
