"""Inputs from a file of JSON lines, plain or gzip: read as they are needed, each bad line told and stepped over.

A line is an object of its own. With the app's ``intake`` it is whatever that function takes; without, it is
``{"agent": …, "key": …, "type": …, "payload": …, "id": …}``, where ``type`` may be left out for a plain value.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final, cast

import msgspec

from ..agents.app import App, Input
from ..agents.doors import checked_input, checked_json
from ..agents.errors import AgentError, InputRefused
from ..eventlog.errors import LogError
from .process import Intake

LONGEST_LINE: Final = 64 << 20
"""Bytes of one line, so that a file without line ends cannot fill the memory."""
_HOPELESS: Final = 20
"""So many lines at the beginning that are no JSON make a file that holds no inputs at all: an archive, a picture, UTF-16."""
_HELPING: Final = 256
_HELPING_BYTES: Final = 8 << 20
_GZIP: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"


class _Line(msgspec.Struct):
    agent: str
    key: str
    id: str
    payload: msgspec.Raw
    type: str = ""


class InputFile:
    """One file on its way into the log. ``report`` hears of every line that is not accepted: ``file:line: why``."""

    def __init__(self, path: str, app: App, report: Callable[[str], None]) -> None:
        """Open ``path``; raises ``OSError``."""
        self.name = path
        self.refused = 0
        #: Lines that the app's ``intake`` had no use for.
        self.skipped = 0
        self.ended = False
        self._strange = 0
        self._app, self._report = app, report
        # The raw file is asked how far it was read; the unpacked one would tell a place in the unpacked bytes.
        self._raw = Path(path).open("rb")  # noqa: SIM115 - it stays open from helping to helping
        self._file = cast("IO[bytes]", gzip.GzipFile(fileobj=self._raw)) if self._raw.peek(2)[:2] == _GZIP else self._raw
        self._lines = self._inputs()

    @property
    def size(self) -> int | None:
        """Bytes of the file as it lies there; ``None`` when it is no regular file."""
        try:
            return os.fstat(self._raw.fileno()).st_size if self._raw.seekable() else None
        except (OSError, ValueError):
            return None

    @property
    def read(self) -> int:
        """How many of them have been read."""
        return self._raw.tell() if not self._raw.closed and self._raw.seekable() else 0

    def helping(self) -> list[Intake]:
        """The next inputs; none when the file has ended."""
        found: list[Intake] = []
        size = 0
        for each in self._lines:
            found.append(each)
            size += len(each.event.data)
            if len(found) >= _HELPING or size >= _HELPING_BYTES:
                break
        else:
            self.ended = True
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._raw.close()

    def _inputs(self) -> Iterator[Intake]:
        number = 0
        try:
            for number, line in enumerate(self._numbered(), 1):
                if line is None:
                    self._refuse(number, f"longer than {LONGEST_LINE >> 20} MiB")
                elif (intake := self._taken(number, line)) is not None:
                    yield intake
                if self._strange == number == _HOPELESS:
                    self._refuse(number, f"none of the first {_HOPELESS} lines is JSON: this is no file of JSON lines in UTF-8, and is read no further")
                    return
        except (EOFError, OSError, zlib.error) as problem:
            self._refuse(number + 1, f"the file cannot be read further: {problem}. Is it whole?")

    def _numbered(self) -> Iterator[bytes | None]:
        """Line by line; ``None`` in place of one that is too long."""
        first = True
        while line := self._file.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = self._file.readline(LONGEST_LINE)
                yield None
            else:
                yield line.removeprefix(_BOM) if first else line
            first = False

    def _taken(self, number: int, line: bytes) -> Intake | None:
        if not line.strip():
            return None
        try:
            made = self._own(line) if self._app.intake is not None else self._plain(line)
        except (AgentError, LogError, msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            self._strange += isinstance(problem, msgspec.DecodeError | UnicodeError) and not isinstance(problem, msgspec.ValidationError)
            self._refuse(number, _why(problem))
            return None
        if made is None:
            self.skipped += 1
        return made

    def _plain(self, line: bytes) -> Intake:
        given = msgspec.json.decode(line, type=_Line)
        stream, event = checked_json(self._app, given.agent, given.key, given.type, bytes(given.payload), given.id)
        return Intake(stream, event, given.id)

    def _own(self, line: bytes) -> Intake | None:
        value = msgspec.json.decode(line)
        if not isinstance(value, dict):
            raise InputRefused(f"a line is a JSON object, not {type(value).__name__}: {line!r:.100}")
        assert self._app.intake is not None
        try:
            made = self._app.intake(value)
        except Exception as problem:  # whatever the app's own function raises, the other lines go on
            raise InputRefused(f"the app's intake failed with {type(problem).__name__}: {problem}") from problem
        if made is None:
            return None
        if not isinstance(made, Input):
            raise InputRefused(f"the app's intake must return an Input or None, not {type(made).__name__}")
        stream, event = checked_input(self._app, made)
        return Intake(stream, event, made.id)

    def _refuse(self, number: int, why: str) -> None:
        self.refused += 1
        self._report(f"{self.name}:{number}: {why}")


def _why(problem: Exception) -> str:
    if isinstance(problem, msgspec.ValidationError):
        return f'{problem}; a line is {{"agent": …, "key": …, "type": …, "payload": …, "id": …}}'
    if isinstance(problem, msgspec.DecodeError):
        return f"not JSON: {problem}"
    if isinstance(problem, UnicodeError):
        return f"not UTF-8: {problem}"
    return "nested too deep" if isinstance(problem, RecursionError) else str(problem)
