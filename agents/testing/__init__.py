"""The test kit: scenarios for one turn, a harness for whole runs, and the words to say what should have happened.

Names are loaded when they are first asked for, so that the pytest plugin costs a test run nothing until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .answers import ModelCall, NothingScripted, ScriptedModel
    from .arrivals import NotWaitedFor, approved, cancelled, denied, elapsed, failed, returned, signalled
    from .clock import VirtualClock
    from .hands import Effect, results
    from .harness import Harness
    from .matching import (
        ANYTHING,
        approval,
        completed,
        continued,
        ended_cancelled,
        intent,
        patched,
        performed,
        saved,
        sent,
        sleeping,
        suspended,
        taken,
        traced,
        withdrawn,
    )
    from .replaying import assert_replays
    from .runs import Run
    from .scenario import given

_WHERE = {
    "ANYTHING": "matching",
    "Effect": "hands",
    "Harness": "harness",
    "ModelCall": "answers",
    "NotWaitedFor": "arrivals",
    "NothingScripted": "answers",
    "Run": "runs",
    "ScriptedModel": "answers",
    "VirtualClock": "clock",
    "approval": "matching",
    "approved": "arrivals",
    "assert_replays": "replaying",
    "cancelled": "arrivals",
    "completed": "matching",
    "continued": "matching",
    "denied": "arrivals",
    "elapsed": "arrivals",
    "ended_cancelled": "matching",
    "failed": "arrivals",
    "given": "scenario",
    "intent": "matching",
    "patched": "matching",
    "performed": "matching",
    "results": "hands",
    "returned": "arrivals",
    "saved": "matching",
    "sent": "matching",
    "signalled": "arrivals",
    "sleeping": "matching",
    "suspended": "matching",
    "taken": "matching",
    "traced": "matching",
    "withdrawn": "matching",
}

__all__ = [
    "ANYTHING",
    "Effect",
    "Harness",
    "ModelCall",
    "NotWaitedFor",
    "NothingScripted",
    "Run",
    "ScriptedModel",
    "VirtualClock",
    "approval",
    "approved",
    "assert_replays",
    "cancelled",
    "completed",
    "continued",
    "denied",
    "elapsed",
    "ended_cancelled",
    "failed",
    "given",
    "intent",
    "patched",
    "performed",
    "results",
    "returned",
    "saved",
    "sent",
    "signalled",
    "sleeping",
    "suspended",
    "taken",
    "traced",
    "withdrawn",
]

__getattr__, __dir__ = names_of(__name__, _WHERE)
