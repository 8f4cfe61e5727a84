"""The effector room: the hands. The only room that touches the outside world."""

from __future__ import annotations

from .effector import Counts, Effector, EffectorSettings
from .outbox import Outbox, Pending
from .phases import Outcome

__all__ = ["Counts", "Effector", "EffectorSettings", "Outbox", "Outcome", "Pending"]
