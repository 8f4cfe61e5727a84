"""A projection over one stream, as of any version: its handler run over a view in memory, with states kept on the way."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ...eventlog.errors import LogError, Undecodable
from ...eventlog.log import EventLog
from ...eventlog.printing import one_line
from ...eventlog.projections import Decoder, Projection

_EVERY: Final = 256
_MOST_KEPT: Final = 64


class MemoryView:
    """Rows by key, held by nobody else."""

    def __init__(self, rows: dict[str, bytes]) -> None:
        self.rows = rows

    def get(self, key: str) -> bytes | None:
        """The value, or ``None``."""
        return self.rows.get(key)

    def put(self, key: str, value: bytes) -> None:
        """Set a value."""
        self.rows[key] = value

    def delete(self, key: str) -> None:
        """Forget a key."""
        self.rows.pop(key, None)

    def items(self, prefix: str = "") -> Iterator[tuple[str, bytes]]:
        """Pairs in key order."""
        return iter(sorted((key, value) for key, value in self.rows.items() if key.startswith(prefix)))


@attrs.frozen
class Rows:
    """The view at a version, and where it stopped short of it."""

    rows: dict[str, bytes]
    #: What the handler raised, and at which version; empty when it took everything.
    fault: str = ""

    def readable(self) -> dict[str, Any]:
        """The rows with their values as what they most likely are: JSON, text, or bytes."""
        return {key: _readable(value) for key, value in self.rows.items()}


def _readable(raw: bytes) -> Any:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return raw
    try:
        return json.loads(text)
    except ValueError:
        return text


class Projected:
    """Folds the projection anew from the nearest state it has kept; a few of them, evenly spread, stay."""

    def __init__(self, log: EventLog, stream: str, projection: Projection, decoder: Decoder) -> None:
        self._log = log
        self._stream = stream
        self._projection = projection
        self._decoder = decoder
        self._kept: dict[int, dict[str, bytes]] = {-1: {}}
        self._every = _EVERY

    def at(self, version: int) -> Rows:
        """The view after the event at ``version``. A handler that raises stops it there: what it had built is shown."""
        places = sorted(self._kept)
        begin = places[bisect_right(places, version) - 1]
        view = MemoryView(dict(self._kept[begin]))
        for stored in self._log.read(self._stream, after=begin, upto=version):
            if not self._projection.types or stored.type in self._projection.types:
                try:
                    decoded = self._decoder.decode_stored(stored)
                    self._projection.handle(view, stored, decoded)
                except (Undecodable, LogError) as problem:
                    return Rows(view.rows, one_line(str(problem)))
                except Exception as problem:  # whatever a handler raises is what is shown
                    return Rows(view.rows, one_line(f"version {stored.version}: {type(problem).__name__}: {problem}"))
            if (stored.version + 1) % self._every == 0:
                self._keep(stored.version, view)
        return Rows(view.rows)

    def _keep(self, version: int, view: MemoryView) -> None:
        self._kept[version] = dict(view.rows)
        if len(self._kept) > _MOST_KEPT:  # every other one goes, and from now on they are made that far apart
            self._every *= 2
            self._kept = {at: rows for at, rows in self._kept.items() if (at + 1) % self._every == 0}
