"""Payloads that lie beside their events: fetched behind the rows that need them, a few megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

from ..errors import StoreSchemaError
from .arrays import blobs, integers
from .connection import Database
from .statements import statement

_HELPING_BYTES: Final = 4 << 20
_IN_LOG: Final = 0


class Payloads:
    """Fills rows in whose payload is empty because it is kept elsewhere, once for all events that have it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_stream(self, stream: str, rows: list[Any], version: int, content: int) -> Iterator[list[Any]]:
        """``rows`` of one stream, whole, in as many helpings as their bytes ask for."""
        if all(map(itemgetter(content), rows)):
            return iter((rows,))
        empty = integers([row[version] for row in rows if not row[content]])
        return self._filled(rows, version, content, self._database.rows(statement("find_blobs_of_stream"), (stream, empty)))

    def of_log(self, rows: list[Any], content: int) -> Iterator[list[Any]]:
        """The same for rows of the whole log, which begin with their position."""
        if all(map(itemgetter(content), rows)):
            return iter((rows,))
        empty = integers([row[_IN_LOG] for row in rows if not row[content]])
        return self._filled(rows, _IN_LOG, content, self._database.rows(statement("find_blobs_at"), (empty,)))

    def _filled(self, rows: list[Any], key: int, content: int, places: list[Any]) -> Iterator[list[Any]]:
        kept = {at: (digest, size) for at, digest, size in places}
        helping: list[Any] = []
        wanted: dict[bytes, int] = {}
        left = _HELPING_BYTES
        for row in rows:
            place = kept.get(row[key]) if not row[content] else None
            if place is not None and place[0] not in wanted:
                digest, size = place
                if size is None:
                    raise self._gone(digest)
                if helping and size > left:
                    yield self._fetched(helping, key, content, kept, list(wanted))
                    helping, wanted, left = [], {}, _HELPING_BYTES
                wanted[digest] = size
                left -= size
            helping.append(row)
        if helping:
            yield self._fetched(helping, key, content, kept, list(wanted))

    def _fetched(self, rows: list[Any], key: int, content: int, kept: dict[int, tuple[bytes, int]], digests: list[bytes]) -> list[Any]:
        if not digests:
            return rows
        found: dict[bytes, bytes] = dict(self._database.rows(statement("read_blobs"), (blobs(digests),)))
        whole: list[Any] = []
        for row in rows:
            place = kept.get(row[key]) if not row[content] else None
            if place is not None:
                data = found.get(place[0])
                if data is None:
                    raise self._gone(place[0])
                row = (*row[:content], data, *row[content + 1 :])
            whole.append(row)
        return whole

    def _gone(self, digest: bytes) -> StoreSchemaError:
        address = self._database.address
        return StoreSchemaError(
            f"{address.shown} lacks the payload with SHA-256 {digest.hex()}, which events refer to: somebody deleted a row of {address.schema}.blobs. "
            "Restore the table from a backup."
        )
