"""Where a fork is put: a bundle of its own, another log, or, when it is to go on for real, a log under a new name.

A copy keeps the name and the ids of its source: it is the same history under other circumstances, in a place of its own,
where nothing is due and nobody carries out what it wants. One that goes on for real is somebody else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Final

import attrs

from ...agents.app import App
from ...agents.queues import EFFECTS, TURNS
from ...agents.run import next_attention
from ...eventlog.clock import Clock, system_clock
from ...eventlog.errors import EventIdConflict, LogError, WrongExpectedVersion
from ...eventlog.events import NewEvent
from ...eventlog.ids import id_maker
from ...eventlog.log import AppendRequest, EventLog, StreamAppend, Wake
from ...eventlog.masking import masked_url
from ...eventlog.names import category_of, split_stream, stream_name
from ...eventlog.opening import open_log
from ...eventlog.versions import NO_STREAM
from ..bundles.layout import FORMAT, VERSION, Manifest
from ..bundles.log import BundleLog
from ..bundles.writing import write_bundle
from ..errors import ForkRefused, NameTaken
from ..fold import folder_for
from ..replays import replay_stream
from ..sources import SCHEME, bundle_path
from ..verdicts import Verdict
from .begun import ForkBegun, fork_codec, place_of
from .going_on import WhatIf, Why
from .identity import renamed
from .loaded import check_emits_nothing, missing_in, placed
from .pieces import INVENTED, Piece

_OFF: Final = "fork: effects are off"
"""Who holds the lease of a copy's effects, so that no effector takes them up."""
FOR_EVER: Final = 2**62


@attrs.frozen
class Written:
    """Where a fork stands."""

    log: str
    stream: str
    events: int
    live: bool


def default_place(stream: str, upto: int, folder: Path) -> str:
    """A bundle that is not there yet."""
    name = f"fork-{category_of(stream)}-{hashlib.sha256(stream.encode()).hexdigest()[:8]}-{upto}"
    return str(next(path for n in count(1) if not (path := folder / f"{name}{'' if n == 1 else f'-{n}'}.bundle").exists()))


def write_copy(fork: WhatIf, place: str, *, source_log: str, by: str) -> Written:
    """Write the fork to ``place``, a bundle or the URL of a log; nothing there becomes due.

    Raises ``ForkRefused`` when the stream is there already, and ``ReplayError`` for a bundle that cannot be written.
    """
    record = _record(fork, fork.stream, source_log, by, live=False, renamed={})
    path = bundle_path(place)
    if path is not None:
        write_bundle(_as_log(fork, record), (fork.stream, place_of(fork.stream)), path)
        return Written(place if place.endswith(".bundle") else f"{SCHEME}{path}", fork.stream, len(fork.pieces), False)
    clock = _Clock(fork.pieces[0].recorded_at)
    log = open_log(place, clock=clock)
    try:
        if log.head(fork.stream) >= 0:
            raise ForkRefused(f"{masked_url(place)} has a stream {fork.stream} already, and a copy keeps its name. Write it to another log, or to a bundle.")
        for name, events in missing_in(log, fork.loaded).items():  # first, so that the fork is never there without them
            _append(log, clock, name, [Piece.of(event) for event in events])
        # Before there is anything to carry out. Turns need no holding back: nothing wakes the stream.
        log.schedule.acquire(EFFECTS, (fork.stream,), _OFF, now=clock(), until=FOR_EVER)
        _append(log, clock, fork.stream, fork.pieces)
        clock.now = None
        log.append(place_of(fork.stream), [_staged(record)], NO_STREAM)
    except (WrongExpectedVersion, EventIdConflict) as problem:
        other = problem.stream if isinstance(problem, WrongExpectedVersion) else fork.stream
        raise ForkRefused(f"{masked_url(place)}: somebody else writes to {other} there at this moment. Write the fork to another place.") from problem
    finally:
        log.close()
    return Written(place, fork.stream, len(fork.pieces), False)


def _append(log: EventLog, clock: _Clock, stream: str, pieces: Sequence[Piece]) -> None:
    """A stream that is not there yet, each of its appends at the moment it was made."""
    expected = -1
    for moment, together in groupby(pieces, key=lambda piece: piece.recorded_at):
        clock.now = moment
        events = [piece.new() for piece in together]
        log.append(stream, events, expected if expected >= 0 else NO_STREAM)
        expected += len(events)


def check_live(fork: WhatIf, app: App) -> None:
    """Raise ``ForkRefused`` when the fork cannot go on for real without doing again what is the source's to do."""
    if fork.stop.why in (Why.LEFT, Why.IMPOSSIBLE):
        raise ForkRefused(f"This fork cannot go on: {fork.stop.why.value}: {fork.stop.text}")
    staged = {app.codec.decode(each.type, each.schema, each.data).intent_id: each.origin for each in fork.pieces if each.type == "intent.staged"}
    for intent in fork.state.run.intents.values():
        if intent.settled is None and staged.get(intent.intent_id, INVENTED) != INVENTED:
            at = staged[intent.intent_id]
            raise ForkRefused(
                f"Intent {intent.intent_id} ({intent.tool}, version {at}) was staged before the fork and has no outcome: it is the source's to carry out, "
                f"and a fork that goes on for real would do it again. Fork before it (--at below {at}), or when it is settled."
            )
    for activation in fork.state.run.open.values():
        child = next((wait for wait in activation.waits if wait.startswith("child-") and wait not in activation.outcomes), None)
        if child is not None:
            raise ForkRefused(f"Activation {activation.seq} waits for the reply of another key ({child}), which is told to the source. Fork when it is there.")
    check_emits_nothing(app.codec, fork.pieces)


def live_name(log: EventLog, stream: str) -> str:
    """A name that nobody has: the source's with ``~fork`` and a number behind it."""
    agent, key = split_stream(stream)
    names = (stream_name(agent, f"{key}~fork{n}") for n in count(1))
    return next(name for name in names if log.head(name) < 0 and log.head(place_of(name)) < 0)


def write_live(fork: WhatIf, app: App, log: EventLog, name: str, *, source_log: str, by: str) -> Written:
    """Write the fork to ``log`` as the stream ``name``, due as it is: from now on workers and effectors go on with it.

    One append: it is there as a whole, or not at all. Raises ``NameTaken``, and ``ForkRefused``, see ``check_live``; also when
    its code decides otherwise under its new name, for then what was recorded is not its past.
    """
    check_live(fork, app)
    pieces, ids = renamed(app.codec, fork.pieces, name)
    record = _record(fork, name, source_log, by, live=True, renamed=ids)
    _check_replays(pieces, app, name, fork)
    folder = folder_for(app, name)
    state = folder.fold(folder.empty(name), [piece.row(version) for version, piece in enumerate(pieces)])
    parts = (
        StreamAppend(name, [piece.new() for piece in pieces], NO_STREAM, (Wake(TURNS, next_attention(state.run)),)),
        StreamAppend(place_of(name), [_staged(record)], NO_STREAM),
        *(StreamAppend(other, [Piece.of(event).new() for event in events], NO_STREAM) for other, events in missing_in(log, fork.loaded).items()),
    )
    (outcome,) = log.append_batch([AppendRequest(parts)])
    if isinstance(outcome, LogError):
        taken = isinstance(outcome, WrongExpectedVersion | EventIdConflict) and log.head(place_of(name)) >= 0
        raise (NameTaken if taken else ForkRefused)(f"{name} was not written: {'somebody else has forked under this name' if taken else outcome}") from outcome
    return Written(log.url, name, len(pieces), True)


def _check_replays(pieces: Sequence[Piece], app: App, name: str, fork: WhatIf) -> None:
    events = placed({name: [piece.stored(name, version) for version, piece in enumerate(pieces)], **fork.loaded})
    found = replay_stream(BundleLog("fork", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), events, {}), app, name)
    if found.verdict is Verdict.SAME:
        return
    said = found.reason
    if found.divergence is not None:
        where = f"version {found.divergence.version}, {found.divergence.place}"
        said = f"{where} {found.divergence.field}: recorded {found.divergence.recorded}, decided {found.divergence.decided}"
    raise ForkRefused(
        f"Under the name {name} the code does not decide again what it decided for {fork.stream} ({said:.500}): something in it depends on the key. "
        "Look at it as a copy, without --live; or fork before that activation began."
    )


def _record(fork: WhatIf, stream: str, source_log: str, by: str, *, live: bool, renamed: dict[str, str]) -> ForkBegun:
    base = fork.source[fork.upto].event_id
    return ForkBegun(stream, fork.stream, masked_url(source_log), fork.upto, fork.first, base, fork.edits.as_texts(), by, live, renamed)


def _staged(record: ForkBegun) -> NewEvent:
    """For an append; under an id of its own, or of two forks alike that are made at one moment the second would be taken for the first sent again."""
    return fork_codec().stage(record, event_id=id_maker()())


def _as_log(fork: WhatIf, record: ForkBegun) -> BundleLog:
    kind, schema, blob = fork_codec().encode(record)
    copied = {fork.stream: [piece.stored(fork.stream, version) for version, piece in enumerate(fork.pieces)], **fork.loaded}
    last = max(event.recorded_at for events in copied.values() for event in events)
    beside = Piece(kind, schema, blob, bytes(16), last).stored(place_of(fork.stream), 0)
    events = placed({**copied, beside.stream: [beside]})
    return BundleLog("fork", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), events, {})


@attrs.define
class _Clock:
    """The moments of the source, so that a copy's times are its."""

    now: int | None
    clock: Clock = system_clock

    def __call__(self) -> int:
        return self.clock() if self.now is None else self.now
