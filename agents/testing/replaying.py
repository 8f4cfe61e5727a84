"""``assert_replays``: the agent's code, run again over what is recorded, decides the same."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from .apart import apart

if TYPE_CHECKING:
    from ...eventlog.log import EventLog
    from ..app import App


class HasLog(Protocol):
    """A run of the harness."""

    log: EventLog


def assert_replays(app: App, log_or_run: EventLog | HasLog, stream: str | None = None) -> None:
    """Replay ``stream``, or all of the log; raises ``AssertionError`` for what diverges or cannot be replayed, and for an empty log."""
    __tracebackhide__ = True  # pytest shows the line of the test instead
    # A test kit stands outside of the arrows between the rooms: no agent imports it, and it needs all four. Imported by
    # name and not before it is asked for, so that no room that imports `agents` gets the others by accident.
    replay: Any = import_module("...replay", __package__)
    log: Any = getattr(log_or_run, "log", log_or_run)
    replayed: list[Any] = apart(lambda: list(replay.replay_all(log, app, None if stream is None else [stream])))
    if not replayed:
        raise AssertionError("there is nothing to replay: the log is empty")
    wrong = [each for each in replayed if each.verdict is not replay.Verdict.SAME]
    if wrong:
        raise AssertionError("\n".join(_shown(wrong)))


def _shown(wrong: Iterable[Any]) -> Iterable[str]:
    for each in wrong:
        if each.divergence is None:
            yield f"{each.stream} cannot be replayed: {each.reason}"
            continue
        found = each.divergence
        yield f"{each.stream} diverges at version {found.version} ({found.event}), {found.place}"
        yield f"  recorded  {found.recorded}\n  decided   {found.decided}" + (f"\n  first difference: {found.field}" if found.field else "")
