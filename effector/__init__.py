"""The effector room: the hands. The only room that touches the outside world.

Names are loaded when they are first asked for, so that ``eventlog --help`` brings none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agents.lazily import names_of

if TYPE_CHECKING:
    from .effector import Effector
    from .measures import Counts, EffectorSettings
    from .outbox import Outbox, Pending
    from .phases import Outcome
    from .process import Process, Progress

_WHERE = {
    "Counts": "measures",
    "Effector": "effector",
    "EffectorSettings": "measures",
    "Outbox": "outbox",
    "Outcome": "phases",
    "Pending": "outbox",
    "Process": "process",
    "Progress": "process",
}

__all__ = ["Counts", "Effector", "EffectorSettings", "Outbox", "Outcome", "Pending", "Process", "Progress"]

__getattr__, __dir__ = names_of(__name__, _WHERE)
