"""``PERSISTENCE_MODULE=intentlog.eventlog.recorders.sqlite``: a log in one file, for several processes."""

from __future__ import annotations

from urllib.parse import quote

from . import factory


class SqliteFactory(factory.LogFactory):
    """Recorders over the file that ``SQLITE_DBNAME`` names, or else ``EVENTLOG_URL``.

    ``SQLITE_LOCK_TIMEOUT`` is how many seconds to wait for other writers of the file that ``SQLITE_DBNAME`` names. It is an
    event log, not a database that the library's own SQLite module made; one of those is refused.
    """

    SQLITE_DBNAME = "SQLITE_DBNAME"
    SQLITE_LOCK_TIMEOUT = "SQLITE_LOCK_TIMEOUT"

    def _url(self) -> str:
        path = self.env.get(self.SQLITE_DBNAME)
        if path:
            return self._url_of(path)
        url = self._required(self.EVENTLOG_URL, f"sqlite:///path/to/file.db, or {self.SQLITE_DBNAME} to the path alone")
        if not url.startswith("sqlite:"):
            raise OSError(
                f"{self.EVENTLOG_URL} {url!r:.200} is no SQLite URL. Give sqlite:///path/to/file.db, or use intentlog.eventlog.recorders for any store."
            )
        return url

    def _url_of(self, path: str) -> str:
        if path.startswith(("file:", ":memory:")):
            raise OSError(f"{self.SQLITE_DBNAME} {path!r:.200} must be the path of a file. For a log in memory use intentlog.eventlog.recorders.memory.")
        timeout = (self.env.get(self.SQLITE_LOCK_TIMEOUT) or "").strip()
        if not timeout:
            return f"sqlite:///{quote(path)}"
        if not (timeout.isascii() and timeout.isdigit()):
            raise OSError(f"Invalid {self.SQLITE_LOCK_TIMEOUT} {timeout!r:.80}: it must be a whole number of seconds.")
        return f"sqlite:///{quote(path)}?busy_timeout_ms={int(timeout) * 1000}"
