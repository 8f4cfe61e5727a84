"""Arguments that the looking-back commands share: streams and places in them, paths into a state, conditions. Wrong ones are usage errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..eventlog.console import complete_streams

if TYPE_CHECKING:
    from ..agents.app import App
    from .expressions import Expression
    from .fold import At
    from .paths import Path

F = TypeVar("F", bound=Callable[..., Any])
_WIDEST = 200


def line_width() -> int:
    """Columns for lines of running text: at most 200 on a terminal, and no bound in a pipe, where nothing is cut."""
    from ..eventlog.printing import on_terminal, width

    return min(width(), _WIDEST) if on_terminal() else width()


def _streams(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> list[str]:
    from ..eventlog.names import check_stream

    return [check_stream(each) for each in value]


def streams_argument(command: F) -> F:
    """``[STREAM]...`` as the parameter ``streams``; empty when none is named."""
    return click.argument("streams", metavar="[STREAM]...", nargs=-1, shell_complete=complete_streams, callback=_streams)(command)


def optional_app(spec: str | None) -> App | None:
    """The app that ``--app`` names; ``None`` when it is not given."""
    if not spec:
        return None
    from .users_code import load_app

    return load_app(spec)


def place(ctx: click.Context, parameter: click.Parameter, value: str | None) -> At | None:
    """A version, ``@position`` or moment; ``None`` is now."""
    from .errors import NoSuchVersion
    from .fold import parse_at

    if value is None:
        return None
    try:
        return parse_at(value)
    except NoSuchVersion as problem:
        raise click.BadParameter(str(problem), ctx, parameter) from None


def place_argument(name: str, metavar: str) -> Callable[[F], F]:
    """A place in the stream as an argument."""
    return click.argument(name, metavar=metavar, callback=place)


def at_option(text: str = "As of then") -> Callable[[F], F]:
    """``--at VERSION|@POSITION|TIME`` as the parameter ``at``; ``text`` says what for."""
    said = f"{text}: 17, @1234, now, or the end of a time: 2026-01-31T09:14:02.  [default: now]"
    return click.option("--at", "at", metavar="VERSION|@POSITION|TIME", callback=place, help=said)


def path(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """A path into the state."""
    from .errors import BadPath
    from .paths import parse_path

    if value is None:
        return None
    try:
        return parse_path(value)
    except BadPath as problem:
        raise click.BadParameter(str(problem), ctx, parameter) from None


def path_argument(*, required: bool) -> Callable[[F], F]:
    """``PATH`` as the parameter ``path``."""
    return click.argument("path", metavar="PATH" if required else "[PATH]", required=required, callback=path)


def expression(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Expression | None:
    """A condition."""
    from .errors import BadExpression
    from .expressions import parse_expression

    if value is None:
        return None
    try:
        return parse_expression(value)
    except BadExpression as problem:
        raise click.BadParameter(str(problem), ctx, parameter) from None
