"""What holds while a reading command runs users' code: what the code prints is no answer, and the code can neither end the command unsaid nor keep it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..eventlog.console import COULD_NOT
from ..eventlog.ending import from_here_on
from ..eventlog.printing import apart, note

if TYPE_CHECKING:
    from ..agents.app import App


def load_app(spec: str | None) -> App:
    """``agents.loading.load_app``, for a command: until it ends, users' code prints to stderr, and is found out when it ends the process."""
    from ..agents.loading import load_app as loaded

    context = click.get_current_context()
    context.with_resource(apart())
    context.with_resource(_not_unsaid())
    from_here_on()
    return loaded(spec)


@contextmanager
def _not_unsaid() -> Iterator[None]:
    """``os._exit`` in this very process says so, and ends it as one that could not do what it was asked for."""
    ends, mine = os._exit, os.getpid()

    def ended(status: Any) -> NoReturn:
        if os.getpid() != mine:  # the code's own child
            ends(status)
        note(f"eventlog: the app's code ended the process (os._exit({status!r})) before the answer was there")
        ends(COULD_NOT)

    os._exit = ended
    try:
        yield
    finally:
        os._exit = ends
