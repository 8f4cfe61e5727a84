"""The replay room: the memory. Folds, runs agent code again against the journal, compares, verifies, tells the story.

Memory has no hands: nothing here imports the effector, holds a model client, calls a tool or writes to a log.
"""

from __future__ import annotations

from .allowing import Allowance, read_allowances
from .errors import EmptyStream, NoSuchStream, NoSuchVersion, ReplayError, UnknownAgent
from .fold import At, parse_at, state_as_tree, state_at
from .preflight import Outlook, RunOutlook, StreamOutlook, preflight_all
from .replays import replay_all, replay_stream
from .verdicts import Divergence, Kind, StateCheck, StreamReplay, Summary, Verdict

__all__ = [
    "Allowance",
    "At",
    "Divergence",
    "EmptyStream",
    "Kind",
    "NoSuchStream",
    "NoSuchVersion",
    "Outlook",
    "ReplayError",
    "RunOutlook",
    "StateCheck",
    "StreamOutlook",
    "StreamReplay",
    "Summary",
    "UnknownAgent",
    "Verdict",
    "parse_at",
    "preflight_all",
    "read_allowances",
    "replay_all",
    "replay_stream",
    "state_as_tree",
    "state_at",
]
