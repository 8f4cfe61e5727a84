"""From a log to a bundle: some streams, what their turns had loaded of others, and how all of it was written."""

from __future__ import annotations

import hashlib
import os
import platform
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec

from ...agents.app import App, runtime_codec
from ...agents.errors import ImpossibleHistory
from ...agents.queues import TURNS
from ...agents.streams import Folder
from ...eventlog.clock import Micros
from ...eventlog.errors import LogError, Undecodable
from ...eventlog.events import StoredEvent
from ...eventlog.listed import as_rows
from ...eventlog.log import EventLog, Snapshot
from ...eventlog.names import category_of
from ..aggregates import snapshot_of
from ..errors import ReplayError
from ..fold import head_of
from ..holes import check_whole
from .layout import FORMAT, MANIFEST, MOST_BYTES, VERSION, Manifest, Member, SnapshotEntry, StreamEntry
from .redacting import Redacting
from .telling import redact_all

_LOADED: Final = "aggregate.loaded"
_TRIES: Final = 10
"""Times that a stream is read which somebody goes on with at that very moment."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that the same history gives the same file."""


def write_bundle(
    log: EventLog, streams: Iterable[str], out: str | Path, app: App | None = None, redact: Sequence[str] = (), *, key: bytes | None = None
) -> Manifest:
    """Write ``streams`` of ``log`` into the file ``out``, which must not be there yet; its manifest.

    Streams that their turns had loaded are put in as well. With ``app``, the manifest tells how its classes looked and
    what its folding code was, and each of its agents' streams has the fold at its end as its snapshot, so that other code
    can be held against it; otherwise a stream has the snapshot that the log has of it. ``redact`` takes paths (see
    ``parse_redactions``); what they name is replaced by a keyed digest, under ``key`` (made anew and forgotten
    when there is none), and snapshots are left out.

    Raises ``NoSuchStream``, ``BrokenHistory`` for a stream with a hole, ``Unredactable`` for a path that names nothing that
    can be replaced, or ``ReplayError`` for a file that is there or cannot be written.
    """
    target = Path(out)
    if target.exists():
        raise ReplayError(f"{target} is there already, and nothing is written over. Name another file, or move this one away.")
    redacting = Redacting.of(redact, os.urandom(32) if key is None else key)
    names = _with_loaded(log, streams)
    members: dict[str, bytes] = {}
    entries: list[StreamEntry] = []
    types: dict[str, set[int]] = {}
    histories, wakes = _read(log, names)
    for place, (name, (events, redacted)) in enumerate(redact_all(redacting, histories).items()):
        for event in events:
            if isinstance(event.schema, int):  # otherwise a hand was at it: verify and raw tell of it
                types.setdefault(event.type, set()).add(event.schema)
        member = _member(members, f"streams/{place}", _encoded(name, events))
        snapshot = None if redact else _snapshot(_folded(app, name, events) or log.snapshots.load((name,)).get(name), members, f"snapshots/{place}")
        entries.append(StreamEntry(name, len(events), member, snapshot, wakes.get(name), name in wakes, tuple(redacted)))
        _check_size(sum(map(len, members.values())))
    redacting.check_used()
    manifest = Manifest(
        FORMAT,
        VERSION,
        f"intentlog {version('intentlog')}",
        platform.python_version(),
        log.url.partition(":")[0],
        tuple(entries),
        {kind: sorted(schemas) for kind, schemas in sorted(types.items())},
        _schemas(app, types) if app is not None else {},
        _code(app) if app is not None else {},
        tuple(redact),
    )
    _write(target, manifest, members)
    return manifest


def _read(log: EventLog, names: Sequence[str]) -> tuple[dict[str, list[StoredEvent]], dict[str, Micros | None]]:
    """The events of each stream, and the wake-ups of those that the queue of turns knows."""
    histories: dict[str, list[StoredEvent]] = {}
    wakes: dict[str, Micros | None] = {}
    for name in names:
        histories[name], found = _still(log, name)
        wakes |= found
        check_whole(name, histories[name], "it goes into no bundle")
        _check_size(sum(len(event.data) for events in histories.values() for event in events))
    return histories, wakes


def _still(log: EventLog, stream: str) -> tuple[list[StoredEvent], dict[str, Micros | None]]:
    """A stream's events with its wake-up at that moment, though a worker goes on with it meanwhile."""
    for _ in range(_TRIES):
        before = log.schedule.wakes(TURNS, (stream,))
        events = list(log.read(stream))
        wakes = log.schedule.wakes(TURNS, (stream,))
        if wakes.get(stream) is not None or log.head(stream) == events[-1].version:
            return events, wakes
        if before.get(stream) is not None:  # what it was set for stands among the events: it was taken since
            return events, before
    return events, wakes


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise ReplayError(f"These streams come to more than {MOST_BYTES:,} bytes, which no bundle is opened with. Bundle fewer of them.")


def _with_loaded(log: EventLog, streams: Iterable[str]) -> list[str]:
    """``streams`` and, behind them, those that a turn of theirs had loaded: a replay reads these too."""
    names = dict.fromkeys(streams)
    if not names:
        raise ReplayError("A bundle needs at least one stream.")
    codec = runtime_codec()
    for name in list(names):
        head_of(log, name)
        for event in log.read(name):
            if event.type == _LOADED:
                try:
                    other = codec.decode(event.type, event.schema, event.data).stream
                except Undecodable:
                    continue  # the bundle holds it as it is; verify and raw tell of it
                if log.head(other) >= 0:
                    names[other] = None
    return list(names)


def _member(members: dict[str, bytes], name: str, blob: bytes) -> Member:
    members[name] = blob
    return Member(name, len(blob), hashlib.sha256(blob).hexdigest())


def _encoded(stream: str, events: Sequence[StoredEvent]) -> bytes:
    try:
        return msgspec.msgpack.encode([(event.position, *event[2:]) for event in events])
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError) as problem:
        raise ReplayError(f"{stream} has columns that no bundle can hold ({problem}). See which: eventlog verify {stream}") from problem


def _folded(app: App | None, stream: str, events: Sequence[StoredEvent]) -> Snapshot | None:
    """What ``app`` folds the whole stream to; ``None`` where it cannot."""
    definitions = app.definitions.get(category_of(stream)) if app is not None else None
    try:
        if definitions is None:
            return snapshot_of(app, stream, as_rows(events)) if app is not None else None
        folder = Folder(definitions)
        return folder.snapshot(folder.fold(folder.empty(stream), as_rows(events)))
    except (LogError, ImpossibleHistory):
        return None  # the bundle holds it as it is; replay and verify tell of it


def _snapshot(found: Snapshot | None, members: dict[str, bytes], name: str) -> SnapshotEntry | None:
    return None if found is None else SnapshotEntry(found.version, found.fingerprint, _member(members, name, found.data))


def _schemas(app: App, types: Iterable[str]) -> dict[str, dict[str, Any]]:
    shown: dict[str, dict[str, Any]] = {}
    for kind in sorted(types):
        entry = app.registry.get(kind)
        if entry is not None:
            fields = {field.name: str(getattr(field.type, "__name__", field.type)) for field in attrs.fields(entry.cls)}
            shown[kind] = {"version": entry.version, "class": f"{entry.cls.__module__}.{entry.cls.__qualname__}", "fields": fields}
    return shown


def _code(app: App) -> dict[str, dict[str, Any]]:
    return {
        name: {"fingerprint": Folder(definitions).fingerprint, "version": definitions.agent.version} for name, definitions in sorted(app.definitions.items())
    }


def _write(target: Path, manifest: Manifest, members: dict[str, bytes]) -> None:
    blob = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    made = False
    try:
        with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            made = True
            for name, content in {MANIFEST: blob, **members}.items():
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(info, content)
            archive.comment = hashlib.sha256(blob).hexdigest().encode()
    except BaseException as problem:  # ^C as well: a part of a bundle would stand in the way of the next
        if made:
            target.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise ReplayError(f"{target} cannot be written: {problem.strerror or problem}.") from problem
        raise
