"""From a file to a ``BundleLog``: every size is bounded, every hash is checked, and nothing but bytes is read.

Opening needs no app and imports none: what the bytes mean is asked later, by whoever looks at them.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...eventlog.events import StoredEvent
from ...eventlog.log import Snapshot
from ..errors import BrokenBundle
from .layout import AGAIN, COLUMNS, FORMAT, MANIFEST, MOST_BYTES, MOST_RATIO, SMALL, VERSION, Manifest, Member, StreamEntry
from .log import BundleLog
from .seams import check_nothing_else

T = TypeVar("T")
_CELLS = frozenset({int, float, bool, str, bytes, type(None)})
"""What a column may hold where a hand was at it: a bundle tells of that as its log does."""
_MOST = 2**63
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def open_bundle(path: str | Path, *, most_bytes: int = MOST_BYTES) -> BundleLog:
    """The bundle at ``path`` as a log for reading only.

    ``most_bytes`` is what its content may come to when unpacked. Raises ``BrokenBundle`` when the file is not there, is
    no bundle, was cut or edited, is larger than that, or was made by a newer release.
    """
    file = Path(path)
    with _explained(file), zipfile.ZipFile(file) as archive:
        _check_sizes(file, archive, most_bytes)
        check_nothing_else(file, archive)
        manifest = _manifest(file, archive)
        _check_members(file, archive, manifest)
        events: dict[str, list[StoredEvent]] = {}
        snapshots: dict[str, Snapshot] = {}
        for entry in manifest.streams:
            events[entry.name] = _events(file, archive, entry)
            if entry.snapshot is not None:
                blob = _content(file, archive, entry.snapshot.member)
                snapshots[entry.name] = Snapshot(entry.snapshot.version, entry.snapshot.fingerprint, blob)
    return BundleLog(f"bundle:{file}", manifest, events, snapshots)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Whatever the zip format stumbles over, in words."""
    try:
        yield
    except FileNotFoundError:
        raise BrokenBundle(f"There is no bundle {file}.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError, ValueError) as problem:
        raise BrokenBundle(f"{file} is no bundle, or was cut short on its way ({problem}). {AGAIN}") from problem
    except OSError as problem:
        raise BrokenBundle(f"{file} cannot be read: {problem.strerror or problem}.") from problem


def _check_sizes(file: Path, archive: zipfile.ZipFile, most_bytes: int) -> None:
    """Before anything is unpacked. ``zipfile`` unpacks no more of a member than it says it has."""
    infos = archive.infolist()
    unpacked, packed = sum(info.file_size for info in infos), max(file.stat().st_size, 1)
    if unpacked > most_bytes:
        raise BrokenBundle(f"{file} would unpack to {unpacked:,} bytes; at most {most_bytes:,} are read. Bundle fewer streams.")
    if unpacked > SMALL and unpacked > MOST_RATIO * packed:
        raise BrokenBundle(f"{file} would unpack to {unpacked:,} bytes from {packed:,}: no history packs that well, so it is not opened.")
    if len({info.filename for info in infos}) != len(infos):
        raise BrokenBundle(f"{file} has two members of one name: no bundle is made like that. {AGAIN}")
    for info in infos:
        if info.flag_bits & 1 or info.compress_type not in _READABLE:
            raise BrokenBundle(f"{file}: member {info.filename!r:.80} is encrypted, or packed in a way that bundles are not. {AGAIN}")


def _manifest(file: Path, archive: zipfile.ZipFile) -> Manifest:
    if MANIFEST not in archive.namelist():
        raise BrokenBundle(f"{file} is a zip without a {MANIFEST}, so it is no bundle. {AGAIN}")
    blob = archive.read(MANIFEST)
    _check_version(file, blob)
    if archive.comment.decode("ascii", "replace") != hashlib.sha256(blob).hexdigest():
        raise BrokenBundle(f"{file} was edited: its {MANIFEST} is not the one it was made with. {AGAIN}")
    return _parsed(file, MANIFEST, lambda: msgspec.json.decode(blob, type=Manifest))


def _check_version(file: Path, blob: bytes) -> None:
    head: Any = _parsed(file, MANIFEST, lambda: msgspec.json.decode(blob))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise BrokenBundle(f"{file} has a {MANIFEST} that says nothing of {FORMAT!r}, so it is no bundle. {AGAIN}")
    if head.get("version") != VERSION:
        raise BrokenBundle(f"{file} is a bundle of version {head.get('version')!r:.20}; this release reads {VERSION}. Install the release that made it.")


def _check_members(file: Path, archive: zipfile.ZipFile, manifest: Manifest) -> None:
    names = [entry.name for entry in manifest.streams]
    if len(set(names)) != len(names):
        raise BrokenBundle(f"{file} lists a stream twice. {AGAIN}")
    listed = {MANIFEST, *(each.name for entry in manifest.streams for each in _members(entry))}
    there = set(archive.namelist())
    if there != listed:
        odd = sorted(there ^ listed)
        raise BrokenBundle(f"{file} does not hold what its manifest lists: {odd[0]!r:.80} is {'missing' if odd[0] in listed else 'not listed'}. {AGAIN}")


def _members(entry: StreamEntry) -> Iterator[Member]:
    yield entry.member
    if entry.snapshot is not None:
        yield entry.snapshot.member


def _content(file: Path, archive: zipfile.ZipFile, member: Member) -> bytes:
    blob = archive.read(member.name)
    if len(blob) != member.size or hashlib.sha256(blob).hexdigest() != member.sha256:
        raise BrokenBundle(f"{file} was edited or damaged: member {member.name!r:.80} is not the one that its manifest has the hash of. {AGAIN}")
    return blob


def _events(file: Path, archive: zipfile.ZipFile, entry: StreamEntry) -> list[StoredEvent]:
    blob = _content(file, archive, entry.member)
    rows = _parsed(file, entry.member.name, lambda: msgspec.msgpack.decode(blob, type=list[list[Any]]))
    if len(rows) != entry.events or any(len(row) != COLUMNS for row in rows):
        raise BrokenBundle(f"{file}: {entry.name!r:.80} does not hold {entry.events} events of {COLUMNS} columns. {AGAIN}")
    odd = {type(cell) for row in rows for cell in row} - _CELLS
    if odd:
        raise BrokenBundle(f"{file}: {entry.name!r:.80} has a {odd.pop().__name__} for a column, which no log holds. {AGAIN}")
    events = [StoredEvent(row[0], entry.name, *row[1:]) for row in rows]
    if any(type(place) is not int or place >= _MOST for event in events for place in (event.position, event.version)):
        raise BrokenBundle(f"{file}: {entry.name!r:.80} has an event without a place. {AGAIN}")
    return events


def _parsed(file: Path, member: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise BrokenBundle(f"{file}: member {member!r:.80} cannot be read: {problem}. {AGAIN}") from problem
