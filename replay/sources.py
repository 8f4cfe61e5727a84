"""Where a history is read from: a log, or a bundle of one. What looks back never knows which of the two it was given.

``bundle:PATH``, or any path that ends in ``.bundle``, is a bundle; everything else is the URL of a log, which is opened
read-only and never made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..eventlog.console import check_kept, note_read, reading

if TYPE_CHECKING:
    from ..eventlog.log import EventLog

SCHEME: Final = "bundle:"
SUFFIX: Final = ".bundle"

F = TypeVar("F", bound=Callable[..., Any])


def bundle_path(source: str) -> str | None:
    """The path of the bundle that ``source`` names, or ``None`` when it names a log.

    >>> bundle_path("bundle:case-7"), bundle_path("case-7.bundle"), bundle_path("sqlite:///eventlog.db")
    ('case-7', 'case-7.bundle', None)
    """
    if source.startswith(SCHEME):
        return source[len(SCHEME) :].removeprefix("//")
    return source if source.endswith(SUFFIX) and "://" not in source else None


def open_source(source: str) -> EventLog:
    """The log or the bundle behind ``source``, for reading only; close it when done.

    Raises ``BrokenBundle``, ``InvalidUrl``, ``StoreSchemaError`` for a log that is not there, or ``LogUnavailable``.
    """
    path = bundle_path(source)
    if path is not None:
        from .bundles.opening import open_bundle

        return open_bundle(path)
    from ..eventlog.opening import open_log

    check_kept(source)
    return open_log(source, create=False, read_only=True)


@contextmanager
def reading_source(source: str) -> Iterator[EventLog]:
    """``open_source`` for a command: closed at the end, and what a log holds back is told of on stderr."""
    if bundle_path(source) is None:
        with reading(source) as log:
            yield log
        return
    bundle = open_source(source)
    note_read(lambda: closing(bundle))
    try:
        yield bundle
    finally:
        bundle.close()


def source_option(command: F) -> F:
    """``--log URL|BUNDLE`` as the parameter ``url``; give it to ``reading_source``."""
    import click

    from ..eventlog.console import DEFAULT_URL

    text = "The log, or a bundle of one: sqlite:///relative.db, postgresql://user@host/database, case-7.bundle, bundle:PATH."
    return click.option("--log", "url", metavar="URL|BUNDLE", envvar="EVENTLOG_URL", default=DEFAULT_URL, show_default=True, show_envvar=True, help=text)(
        command
    )
