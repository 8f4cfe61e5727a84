"""``PERSISTENCE_MODULE=intentlog.eventlog.recorders.postgres``: a log in a schema of a PostgreSQL database, for a service."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from . import factory

#: What the library calls it, and what the log's URL does. Whatever is not set is libpq's to find, in its own environment.
_PARAMETERS: Final = {
    "POSTGRES_HOST": "host",
    "POSTGRES_PORT": "port",
    "POSTGRES_SCHEMA": "schema",
    "POSTGRES_POOL_SIZE": "pool_size",
    "POSTGRES_CONNECT_TIMEOUT": "connect_timeout",
}
_NUMBERS: Final = ("POSTGRES_PORT", "POSTGRES_POOL_SIZE", "POSTGRES_CONNECT_TIMEOUT")


class PostgresFactory(factory.LogFactory):
    """Recorders over the schema that ``POSTGRES_DBNAME`` and its like name, or else ``EVENTLOG_URL``.

    Of the library's own variables it takes ``POSTGRES_DBNAME``, ``_HOST``, ``_PORT``, ``_USER``, ``_PASSWORD``, ``_SCHEMA`` (``intentlog``),
    ``_POOL_SIZE`` (10) and ``_CONNECT_TIMEOUT`` (seconds, 10). Tables are the log's; those of the library's PostgreSQL module are not looked at.
    """

    POSTGRES_DBNAME = "POSTGRES_DBNAME"
    POSTGRES_USER = "POSTGRES_USER"
    POSTGRES_PASSWORD = "POSTGRES_PASSWORD"  # noqa: S105  (a variable's name)
    POSTGRES_GET_PASSWORD_TOPIC = "POSTGRES_GET_PASSWORD_TOPIC"  # noqa: S105  (a variable's name)

    def _url(self) -> str:
        database = self.env.get(self.POSTGRES_DBNAME)
        if database:
            return self._url_of(database)
        url = self._required(self.EVENTLOG_URL, f"postgresql://user@host/database?schema=intentlog, or {self.POSTGRES_DBNAME} to the database alone")
        scheme = url.partition("://")[0]
        if scheme not in ("postgresql", "postgres"):
            raise OSError(
                f"{self.EVENTLOG_URL} begins with {scheme!r:.40}, so it is no PostgreSQL URL. Give postgresql://user@host/database?schema=intentlog, "
                "or use intentlog.eventlog.recorders for any store."
            )
        return url

    def _url_of(self, database: str) -> str:
        if self.env.get(self.POSTGRES_GET_PASSWORD_TOPIC):
            raise OSError(f"{self.POSTGRES_GET_PASSWORD_TOPIC} is not supported. Keep the password in a file that PGPASSFILE names, and renew it there.")
        parameters = {}
        for variable, name in _PARAMETERS.items():
            value = (self.env.get(variable) or "").strip()
            if value and variable in _NUMBERS and not (value.isascii() and value.isdigit()):
                raise OSError(f"Invalid {variable} {value!r:.80}: it must be a whole number.")
            if value:
                parameters[name] = value
        return f"postgresql://{self._user()}/{quote(database, safe='')}?{urlencode(parameters, quote_via=quote)}"

    def _user(self) -> str:
        user = quote(self.env.get(self.POSTGRES_USER) or "", safe="")
        password = quote(self.env.get(self.POSTGRES_PASSWORD) or "", safe="")
        return f"{user}:{password}@" if password else f"{user}@" if user else ""
