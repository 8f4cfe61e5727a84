"""How a file is opened by somebody who only wants to read it, perhaps without the right to do more.

SQLite needs files beside a log in WAL mode even to read it, unless it is promised that nobody writes. So:

* a write-ahead log lies there: open for reading, and take part in it;
* there is none, and this user could write: open as a writer would, and write nothing, so that SQLite tidies up behind itself;
* there is none, and this user may not write: read the bare file, and look again when it changes (nothing is left behind that
  the log's owner could not open).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ..errors import LogUnavailable, TerminalError

WRITABLE: Final = "mode=rw"
READING: Final = "mode=ro"
STILL: Final = "mode=ro&immutable=1"
"""No locks, no files beside it; true only as long as nobody writes."""


def way_to_read(path: Path) -> str:
    """The URI parameters to read ``path`` with. Raises ``LogUnavailable`` when its write-ahead log cannot be read."""
    beside = Path(f"{path}-wal")
    try:
        pending = beside.stat().st_size
    except OSError:
        pending = 0
    folder = os.access(path.parent, os.W_OK | os.X_OK)
    if pending:
        if os.access(beside, os.R_OK) and (folder or os.access(f"{path}-shm", os.R_OK)):
            return READING
        raise LogUnavailable(
            f"{beside} holds {pending} bytes that are not in {path} yet, and this user cannot read them. "
            "Ask for read permission on it and its -shm file, or copy all three into a folder of your own and read them there."
        )
    return WRITABLE if folder and os.access(path, os.W_OK) else STILL


def signature(path: Path) -> tuple[int, ...]:
    """Changes when somebody has written to the file or begun to."""
    found: list[int] = []
    for each in (path, f"{path}-wal"):
        try:
            stat = os.stat(each)
            found += (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        except OSError:
            found.append(-1)
    return tuple(found)


def for_reading_only(path: Path) -> TerminalError:
    """Somebody asked a log that was opened for reading to write."""
    return TerminalError(f"The log on {path} is open for reading only, so nothing can be written to it. Open it with open_log(url) to write.")
