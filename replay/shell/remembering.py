"""What the shell knows next time: of each log, the stream last looked at and the lines typed. Nothing that was recorded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from ...eventlog.masking import masked_url

_FOLDER: Final = Path("intentlog") / "shell"
_MOST_LINES: Final = 2_000


def state_folder(environment: Mapping[str, str]) -> Path:
    """Where such things belong: below ``XDG_STATE_HOME``, or ``~/.local/state``."""
    chosen = environment.get("XDG_STATE_HOME", "")
    base = Path(chosen) if chosen and Path(chosen).is_absolute() else Path(environment.get("HOME", "~")).expanduser() / ".local" / "state"
    return base / _FOLDER


@attrs.frozen
class Memory:
    """One log's part of the folder. Everything is best effort: a home that cannot be written costs the memory, no session."""

    folder: Path
    #: The log's URL, credentials masked, its path absolute.
    url: str

    @classmethod
    def of(cls, folder: Path, url: str, working: Path) -> Memory:
        """The memory of the log at ``url``, a relative path of which is below ``working``."""
        return cls(folder, _absolute(masked_url(url), working))

    def history(self, front: str) -> Path:
        """The file of the lines typed in a front end; each writes its own format."""
        return self.folder / f"{self._name}.{front}"

    @property
    def _name(self) -> str:
        return hashlib.sha256(self.url.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def last_stream(self) -> str:
        """The stream last looked at; empty when nothing is known."""
        try:
            known = json.loads((self.folder / f"{self._name}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return ""
        stream = known.get("stream") if isinstance(known, dict) else None
        return stream if isinstance(stream, str) else ""

    def remember(self, stream: str) -> None:
        """``stream`` is the one being looked at."""
        with contextlib.suppress(OSError):
            self._make()
            self._write(self.folder / f"{self._name}.json", json.dumps({"log": self.url, "stream": stream}))

    def lines(self, front: str) -> list[str]:
        """The lines typed so far, oldest first."""
        try:
            return self.history(front).read_text("utf-8", "replace").splitlines()
        except OSError:
            return []

    def keep(self, front: str, lines: list[str]) -> None:
        """These are the lines typed so far."""
        with contextlib.suppress(OSError):
            self._make()
            self._write(self.history(front), "".join(f"{line}\n" for line in lines[-_MOST_LINES:]))

    def _make(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _write(self, path: Path, text: str) -> None:
        """Whole or not at all, and readable by its owner only."""
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(path)

    def prepared(self, front: str) -> Path | None:
        """The history file, made with its folder for a front end that writes it by itself; ``None`` when it cannot be."""
        try:
            self._make()
            os.close(os.open(self.history(front), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        except OSError:
            return None
        return self.history(front)


def _absolute(url: str, working: Path) -> str:
    for begin in ("sqlite:///", "bundle:"):
        if url.startswith(begin):
            return f"{begin}{working / url.removeprefix(begin)}"
    return url if "://" in url else str(working / url)
