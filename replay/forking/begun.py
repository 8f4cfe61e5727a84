"""On a stream of its own beside each fork: what it is a fork of. Nothing that runs depends on it."""

from __future__ import annotations

from functools import cache

import attrs

from ...agents.app import App, runtime_codec
from ...agents.runtime_events import runtime_registry
from ...eventlog.codec import Codec
from ...eventlog.errors import InvalidName, Undecodable
from ...eventlog.log import EventLog
from ...eventlog.names import category_of, split_stream, stream_name
from ...eventlog.registry import EventRegistry, event
from ..errors import ForkRefused

SUFFIX = ".fork"
"""Behind an agent's name: the category of these streams."""


@event("fork.begun", version=1)
class ForkBegun:
    """A stream was copied, under other circumstances."""

    stream: str
    source: str
    #: The log the source stands in, without credentials.
    source_log: str
    #: The version it was forked at.
    upto: int
    #: The first version that is not the source's.
    first: int
    #: Event id of the source's version ``upto``.
    base: bytes
    edits: tuple[str, ...]
    by: str
    #: It was let go on for real, under an identity of its own.
    live: bool
    #: Ids of its intents → what they were called on the source.
    renamed: dict[str, str] = attrs.field(factory=dict)


@event("fork.merged", version=1)
class ForkMerged:
    """What it decided was brought back, and it goes on no more."""

    source: str
    #: Events the source got, the first of them at this version.
    first: int
    events: int
    by: str


@cache
def fork_codec() -> Codec:
    """A codec that knows the runtime's events and these two."""
    return Codec(EventRegistry(ForkBegun, ForkMerged, base=runtime_registry()))


def codec_for(stream: str, app: App | None) -> Codec:
    """What reads the events of ``stream``: the app's codec, or the runtime's own where there is none.

    The record beside a fork is the runtime's, and no app registers its classes.
    """
    category = category_of(stream)
    if category.endswith(SUFFIX) and (app is None or category not in app.definitions):
        return fork_codec()
    return app.codec if app is not None else runtime_codec()


def place_of(stream: str) -> str:
    """Where the record of a fork stands.

    >>> place_of("accounts-acct-42")
    'accounts.fork-acct-42'
    """
    agent, key = split_stream(stream)
    return stream_name(agent + SUFFIX, key)


def begun(log: EventLog, stream: str) -> ForkBegun:
    """The record of the fork ``stream``; raises ``ForkRefused`` when it is none."""
    stored = next(iter(log.read(place_of(stream), limit=1)), None) if log.head(stream) >= 0 else None
    if stored is None:
        raise ForkRefused(f"{stream} is no fork: {log.url} has no record of one at {place_of(stream)}. Name the log that the fork was written to with --log.")
    try:
        found = fork_codec().decode_stored(stored)
    except Undecodable as problem:
        raise ForkRefused(f"{stream}: the record of the fork cannot be read: {problem}") from problem
    assert isinstance(found, ForkBegun)
    return found


def copied_by(log: EventLog, stream: str) -> int:
    """How many events of the fork ``stream`` were written when it was begun: its first version that is its own.

    The record stands behind them, in the same append or a later one.
    """
    record = next(iter(log.read(place_of(stream), limit=1, payloads=False)))
    return sum(event.position < record.position for event in log.read(stream, payloads=False))


def is_merged(log: EventLog, stream: str) -> bool:
    """Whether the fork was brought back already."""
    return any(event.type == "fork.merged" for event in log.read(place_of(stream), payloads=False))


def is_still(log: EventLog, stream: str) -> bool:
    """Whether it is a fork that is to go on no more, or never was: nobody is woken for it, and that is as it should be."""
    try:
        return log.head(place_of(stream)) >= 0 and (is_merged(log, stream) or not begun(log, stream).live)
    except (ForkRefused, InvalidName):
        return False
