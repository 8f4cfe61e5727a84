"""The effector room: the hands. The only room that touches the outside world.

Names are loaded when they are first asked for, so that ``eventlog --help`` brings none of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .effector import Counts, Effector, EffectorSettings
    from .outbox import Outbox, Pending
    from .phases import Outcome
    from .process import Process, Progress

_WHERE = {
    "Counts": "effector",
    "Effector": "effector",
    "EffectorSettings": "effector",
    "Outbox": "outbox",
    "Outcome": "phases",
    "Pending": "outbox",
    "Process": "process",
    "Progress": "process",
}

__all__ = ["Counts", "Effector", "EffectorSettings", "Outbox", "Outcome", "Pending", "Process", "Progress"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
