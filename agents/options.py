"""Options that several commands of this room share: who does something and with which keys, and lengths of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from ..eventlog.clock import SECOND

if TYPE_CHECKING:
    from .signing import KeyRing

F = TypeVar("F", bound=Callable[..., Any])
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def by_option(command: F) -> F:
    """``--by`` as the parameter ``by``."""
    return click.option("--by", metavar="NAME", help="Who does it, for the record.  [default: the user's name]")(command)


def reason_option(command: F) -> F:
    """``--reason`` as the parameter ``reason``."""
    return click.option("--reason", metavar="TEXT", default="", help="Why, for the record.")(command)


def who(by: str | None) -> str:
    """``by``, or whoever is at the terminal."""
    if by is not None:
        return by
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for the user
        return "unknown"


class Age(click.ParamType[int]):
    """``90s``, ``10m``, ``2h``, ``1d`` in µs."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number, unit = value[:-1], value[-1:]
        if unit not in _UNITS or not number.isascii() or not number.isdigit() or len(number) > 9:
            self.fail(f"{value!r} is no age: a whole number and a unit, for example 90s, 10m, 2h or 1d", param, ctx)
        return int(number) * _UNITS[unit] * SECOND


def keys_option(text: str) -> Callable[[F], F]:
    """``--signing-keys`` as the parameter ``keys``, a ``KeyRing`` or ``None``; ``text`` says what they are for."""
    shown = f"{text} env:NAME or file:/path, where the key ring is. Never the keys themselves."
    return click.option("--signing-keys", "keys", metavar="REFERENCE", envvar="EVENTLOG_SIGNING_KEYS", show_envvar=True, callback=_keys, help=shown)


def _keys(ctx: click.Context, parameter: click.Parameter, value: str | None) -> KeyRing | None:
    if not value:
        return None
    from .signing import KeyRing, KeysRefused

    try:
        return KeyRing.read(value)
    except KeysRefused as problem:
        raise click.BadParameter(str(problem), ctx, parameter) from problem
