"""The state of a stream at any version: the same fold that runs live, from zero, and nothing else (S-8.1, S-9.1)."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final

import attrs

from ..agents.app import App
from ..agents.streams import Folder, StreamState
from ..eventlog.clock import Micros, span_of, to_datetime
from ..eventlog.log import EventLog
from ..eventlog.names import category_of
from .aggregates import folder_of
from .errors import EmptyStream, NoSuchStream, NoSuchVersion, UnknownAgent
from .holes import broken, whole

NOW: Final = ("now", "head", "end")
"""Words for the end of a stream."""

_LOOKED_AT: Final = 20_000


@attrs.frozen
class At:
    """A place in a stream: exactly one of the three is given."""

    version: int | None = None
    #: Everything up to and including this place in the whole log.
    position: int | None = None
    #: Everything before the first event that was recorded later, in µs since 1970-01-01 UTC.
    moment: Micros | None = None


def parse_at(text: str) -> At | None:
    """``17`` is a version, ``@1234`` a position, ``now`` the head (``None``), anything else an ISO 8601 moment (UTC unless it says otherwise).

    A moment means its end: whoever gives a time as it is printed, to the millisecond, means what was recorded within it,
    too. Raises ``NoSuchVersion`` for what is none of them.

    >>> parse_at("17"), parse_at("@1234"), parse_at("1970-01-01T00:00:01.500"), parse_at("now")
    (At(version=17, position=None, moment=None), At(version=None, position=1234, moment=None), At(version=None, position=None, moment=1500999), None)
    """
    stripped = text.strip()
    if stripped.lower() in NOW:
        return None
    if re.fullmatch(r"[0-9]+", stripped):
        return At(version=int(stripped))
    if re.fullmatch(r"@[0-9]+", stripped):
        return At(position=int(stripped[1:]))
    try:
        return At(moment=span_of(stripped)[1])
    except ValueError:
        raise NoSuchVersion(
            f"{text!r:.80} is no place in a stream: give a version (17), a position (@1234), a moment (2026-01-31T09:14:02.113) or now"
        ) from None


def folder_for(app: App, stream: str) -> Folder:
    """The folder of the stream's agent; raises ``UnknownAgent``."""
    definitions = app.definitions.get(category_of(stream))
    if definitions is None:
        raise UnknownAgent(f"{stream}: this app has no agent {category_of(stream)!r}; it has: {', '.join(sorted(app.agents))}")
    return Folder(definitions)


def head_of(log: EventLog, stream: str) -> int:
    """Version of the last event; raises ``NoSuchStream`` when there is none, ``EmptyStream`` when the log lists it all the same."""
    head = log.head(stream)
    if head < 0:
        if next(iter(log.streams(stream)), None) == stream:  # no name that begins with it comes before it
            raise EmptyStream(f"{stream} has no events, though {log.url} lists it: they were deleted behind the log's back. Restore them from a backup.")
        raise NoSuchStream(f"{log.url} has no stream {stream!r}.{_close(log, stream)}")
    return head


def _close(log: EventLog, stream: str) -> str:
    names = list(islice(log.streams(category_of(stream)), _LOOKED_AT)) or list(islice(log.streams(), _LOOKED_AT))
    close = get_close_matches(stream, names, n=3, cutoff=0.5) or names[:3]
    return f" There is {', '.join(close)}{' …' if len(names) > len(close) else ''}" if close else " The log is empty."


def version_at(log: EventLog, stream: str, at: At | int | None) -> int:
    """The version that ``at`` means in this stream (``None``: its head). Raises ``NoSuchStream``, ``NoSuchVersion`` or ``BrokenHistory``."""
    head = head_of(log, stream)
    place = At(version=at) if isinstance(at, int) else at
    if place is None:
        return head
    if place.version is not None:
        if not 0 <= place.version <= head:
            raise NoSuchVersion(f"{stream} has no version {place.version}: its versions are 0 to {head}")
        if place.version != head and next(iter(log.read(stream, after=place.version - 1, upto=place.version, limit=1, payloads=False)), None) is None:
            raise broken(stream, place.version, place.version + 1, stands=False)
        return place.version
    found = _before_position(log, stream, place.position, head) if place.position is not None else _before_moment(log, stream, place.moment or 0)
    if found < 0:
        first = next(iter(log.read(stream, limit=1)))
        raise NoSuchVersion(
            f"{stream} had not begun then: its first event stands at position {first.position}, recorded {to_datetime(first.recorded_at).isoformat()}"
        )
    return found


def _before_position(log: EventLog, stream: str, position: int, head: int) -> int:
    low, high = -1, head
    while low < high:  # positions grow with versions
        middle = (low + high + 1) // 2
        if next(iter(log.read(stream, after=middle - 1, limit=1))).position <= position:
            low = middle
        else:
            high = middle - 1
    return low


def _before_moment(log: EventLog, stream: str, moment: Micros) -> int:
    """Event by event, because the clocks of several writers need not grow with the versions."""
    last = -1
    for rows in log.rows(stream):
        for version, *_, recorded_at in rows:
            if recorded_at > moment:
                return last
            last = version
    return last


def state_at(log: EventLog, app: App, stream: str, at: At | int | None = None) -> StreamState:
    """The run's and the aggregate's state as of ``at`` (``None``: now), folded from the first event on.

    Raises ``NoSuchStream``, ``NoSuchVersion``, ``UnknownAgent``, ``BrokenHistory``, ``Undecodable`` or ``ImpossibleHistory``.
    """
    folder = folder_of(app, stream)
    upto = version_at(log, stream, at)
    state = folder.empty(stream)
    for rows in whole(stream, log.rows(stream, upto=upto)):
        folder.fold(state, rows)
    return state


def state_as_tree(folded: StreamState) -> dict[str, Any]:
    """``folded`` as a tree for printing and JSON: the aggregate under ``state``, the runtime's own part under ``run``."""
    run = folded.run
    return {
        "stream": folded.stream,
        "version": folded.version,
        "state": folded.state,
        "run": {
            "inputs": run.inputs,
            "completed": run.completed,
            "line": list(run.line),
            "activations": {str(seq): activation_as_tree(activation) for seq, activation in run.open.items()},
            "intents": {intent_id: intent_as_tree(intent) for intent_id, intent in run.intents.items()},
            "late": list(run.late),
            "spent": {"tokens": run.spent.tokens, "cost": run.spent.cost},
            "blocked": run.blocked,
        },
    }


def activation_as_tree(activation: Any) -> dict[str, Any]:
    """One open activation, as it stands under ``run.activations``."""
    shown = {
        "state": activation.state.value,
        "input": {"id": activation.input.input_id, "type": activation.input.type},
        "turns": activation.turns,
        "step": activation.step,
        "index": activation.index,
        "model_calls": sorted(activation.models),
        "reads": sorted(activation.tools),
        "intents": list(activation.intents),
    }
    if activation.turns:
        shown |= {"waits": list(activation.waits), "mode": activation.mode, "until": to_datetime(activation.deadline), "results": list(activation.results)}
        shown |= {
            "timed_out": activation.timed_out,
            "timers": {name: to_datetime(at) for name, at in activation.timers.items()},
            "snapshot": activation.snapshot,
        }
    if activation.failures:
        shown |= {
            "failures": activation.failures,
            "last_failure": activation.last_failure,
            "retry_at": to_datetime(activation.retry_at) if activation.retry_at else None,
        }
    return shown


def intent_as_tree(intent: Any) -> dict[str, Any]:
    """One intent, as it stands under ``run.intents``."""
    shown = {"tool": intent.tool, "args": intent.args, "state": intent.state.value, "attempts": intent.attempts, "expires": to_datetime(intent.expires_at)}
    if intent.key:
        shown["key"] = intent.key
    if intent.settled is not None:
        shown |= {"status": intent.settled.status, "value": intent.settled.value, "failure": intent.settled.failure}
    return shown
