"""What a bundle looks like on disk: a zip of a manifest and one member a stream, all of it accounted for by hashes.

::

    manifest.json     what is in here: streams, counts, hashes, schemas, code, what was left out
    streams/0         the events of the manifest's first stream: MessagePack, an array of events, each an array of
                      (position, version, event id, type, schema, data, recorded_at, correlation, causation)
    snapshots/0       that stream's snapshot: the fold at its end when it was made with an app, else the log's, when there was one

The zip's comment is the SHA-256 of the manifest, and the manifest has that of every member; there is not a byte before, between
or behind them: a bundle that was cut or edited does not open. That guards against accidents, not against somebody who computes the hashes anew.
Names of members are made from numbers and are never used as paths of files.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

FORMAT: Final = "intentlog.bundle"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
AGAIN: Final = "Ask for the file once more, or make the bundle anew: eventlog bundle STREAM… -o FILE"
COLUMNS: Final = 9
"""Of an event in its member."""

MOST_BYTES: Final = 1 << 30
"""Of everything in a bundle, unpacked. A bundle is read into memory."""
MOST_RATIO: Final = 200
"""Unpacked to packed, of what is larger than ``SMALL``: histories come nowhere near it."""
SMALL: Final = 64 << 20


@attrs.frozen
class Member:
    """One member of the zip."""

    name: str
    size: int
    sha256: str


@attrs.frozen
class SnapshotEntry:
    """A stream's snapshot, and what it was made by."""

    version: int
    fingerprint: str
    member: Member


@attrs.frozen
class StreamEntry:
    """One stream."""

    name: str
    events: int
    member: Member
    snapshot: SnapshotEntry | None = None
    #: When its next turn was due (µs since 1970-01-01 UTC); ``None`` when the queue had no wake-up for it.
    wake: int | None = None
    #: Whether the queue of turns knew the stream at all.
    known: bool = False
    #: Versions of the events in which something was redacted.
    redacted: tuple[int, ...] = ()


@attrs.frozen
class Manifest:
    """The whole bundle."""

    format: str
    version: int
    #: ``intentlog 0.1.0``, and the Python it ran on.
    made_by: str
    python: str
    #: The kind of store the events came from.
    store: str
    streams: tuple[StreamEntry, ...]
    #: Event type → schema versions that occur.
    types: dict[str, list[int]]
    #: Event type → its class as the app had it: name, schema version, fields with their types.
    schemas: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    #: Agent → the fingerprint of its folding code, and its own version.
    code: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    #: Paths that were redacted, as they were given.
    redactions: tuple[str, ...] = ()
