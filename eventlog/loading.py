"""From ``module:attribute`` to what stands there; what the command line names an app's parts by."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable

import click

from .console import CouldNot


def load_named(
    spec: str | None, wanted: Callable[[object], bool], missing: str, *, kind: str = "app", example: str = "refunds:app", here: bool = True
) -> object:
    """What ``spec`` names and ``wanted`` takes, its module found from the current folder first.

    ``missing`` tells how to make what is wanted; ``kind`` and ``example`` are what it is called and how it is named.
    Without ``here`` nothing is found from the current folder, unless it is on the path already.
    Raises ``click.UsageError`` when the spec names nothing or something else, ``CouldNot`` when the module itself fails.
    """
    if not spec:
        raise click.UsageError(f"This needs the app: --app module:attribute, for example --app {example}, or set EVENTLOG_APP.")
    name, colon, attribute = spec.partition(":")
    file, _, made = example.partition(":")
    if not colon or not name or not attribute or name.startswith(".") or "/" in name or name.endswith(".py"):
        raise click.UsageError(f"{spec!r} names no {kind}. It must be module:attribute, for example {example} for `{made}` in {file}.py.")
    value: object = _imported(spec, name, here)
    for part in attribute.split("."):
        value = _part_of(spec, name, attribute, value, part, wanted)
    if not wanted(value):
        raise click.UsageError(f"{spec!r} is {missing.format(type(value).__name__)}{_found_in(sys.modules[name], wanted)}")
    return value


def _part_of(spec: str, name: str, attribute: str, value: object, part: str, wanted: Callable[[object], bool]) -> object:
    try:
        return getattr(value, part)
    except AttributeError as problem:
        raise click.UsageError(f"{spec!r}: the module {name} has no {attribute!r}.{_found_in(value, wanted)}") from problem
    except BaseException as problem:  # a module's own __getattr__
        if _is_interruption(problem):
            raise
        raise CouldNot(f"{spec!r}: looking for {part!r} in {name} failed with {type(problem).__name__}: {_said(problem)}{_place(problem)}.") from problem


def _imported(spec: str, name: str, here: bool) -> object:
    folder = os.getcwd()
    if here and folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        missing = problem.name or ""
        if name == missing or name.startswith(f"{missing}."):
            where = folder if here else "the code asked for"
            raise click.UsageError(f"{spec!r}: there is no module {missing!r}, neither in {where} nor installed. Go to its folder, or install it.") from problem
        raise CouldNot(f"{spec!r}: {name} imports {missing!r}, which is not installed{_place(problem)}.") from problem
    except BaseException as problem:  # whatever the module's own code raises: sys.exit(0) there is no success of the command
        if _is_interruption(problem):
            raise
        said = _said(problem)
        raise CouldNot(
            f"{spec!r}: importing {name} failed with {type(problem).__name__}{f': {said}' if said else ''}{_place(problem)}. "
            "EVENTLOG_DEBUG=1 shows the traceback."
        ) from problem


def _is_interruption(problem: BaseException) -> bool:
    """Whether it is the user's ^C, and not a module's own: where ^C is ignored it can only be that."""
    return isinstance(problem, KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def _said(problem: BaseException) -> str:
    try:
        return str(problem)
    except BaseException as worse:  # the module's own code again
        return f"(its text cannot be had: {type(worse).__name__})"


def _place(problem: BaseException) -> str:
    if isinstance(problem, SyntaxError):
        return f" ({problem.filename}:{problem.lineno})"
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if "importlib" not in frame.filename]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _found_in(module: object, wanted: Callable[[object], bool]) -> str:
    names = sorted(name for name, value in vars(module).items() if wanted(value)) if hasattr(module, "__dict__") else []
    return f" It has: {', '.join(names)}." if names else ""
