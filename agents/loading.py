"""From ``module:attribute`` to an app; what the command line names apps by."""

from __future__ import annotations

from ..eventlog.loading import load_named
from .app import App


def load_app(spec: str | None, *, here: bool = True) -> App:
    """The app that ``spec`` names, its module found from the current folder first; without ``here`` from the path alone.

    Raises ``click.UsageError`` when the spec names nothing or something else, ``CouldNot`` when the module itself fails.
    """
    found = load_named(spec, _is_app, "no App but of type {}. Build one: app = App(agents=[…]).", here=here)
    assert isinstance(found, App)
    return found


def _is_app(value: object) -> bool:
    return isinstance(value, App)
