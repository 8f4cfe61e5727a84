"""Code from a file, for the fold: an aggregate, an app or a projection, loaded again after each edit.

A file is run as a module of its own, under a name that no other module has, so that what it defines is registered
nowhere but in the registry made for it. The code it replaces stays as it is, and in force until the new one is whole.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs
import click

from ...agents.aggregate import Aggregate
from ...agents.app import App
from ...eventlog.console import CouldNot
from ...eventlog.projections import Projection
from .stand_ins import with_aggregate

_PREFIX: Final = "eventlog_shell_"
_FOLDING: Final = "_eventlog_shell_app"
"""Where a module holds the app that was made of its class."""


@attrs.frozen(eq=False)
class Loaded:
    """What a file gave. Exactly one of ``app`` and ``projection`` is there."""

    path: Path
    #: What in the file was taken.
    name: str
    #: ``module:attribute`` under which the commands find it in this process; empty for what has no agent's code.
    spec: str
    app: App | None = None
    projection: Projection | None = None
    #: Whether the agents' code came with it, so that turns can be run again with it.
    runs: bool = False
    #: As ``spec``, for the commands that only fold.
    folds: str = ""


class Loader:
    """Loads files under names that are used once."""

    def __init__(self) -> None:
        self._count = 0

    def load(self, path: Path, name: str, category: str, app: App | None) -> Loaded:
        """Run the file and take ``name`` from it; without a name, the one app, aggregate or projection that it defines.

        Raises ``click.UsageError`` when there is no such thing, ``CouldNot`` when the file cannot be read or its code fails.
        """
        module = self._run(path)
        chosen = name or _only_one(module, path)
        found = getattr(module, chosen, None)
        if isinstance(found, App):
            spec = f"{module.__name__}:{chosen}"
            return Loaded(path, chosen, spec, app=found, runs=True, folds=spec)
        if isinstance(found, Projection):
            return Loaded(path, chosen, "", projection=found)
        if isinstance(found, type) and issubclass(found, Aggregate):
            made = _folded_by(module, found, category, app)
            setattr(module, _FOLDING, made)
            return Loaded(path, chosen, "", app=made, folds=f"{module.__name__}:{_FOLDING}")
        held = "nothing of that name" if found is None else f"a {type(found).__name__}"
        raise click.UsageError(f"{path}:{chosen} is {held}; what can be loaded is an App, an Aggregate subclass or a Projection. {_offered(module)}")

    def _run(self, path: Path) -> ModuleType:
        try:
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise CouldNot(f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.") from problem
        self._count += 1
        module = ModuleType(f"{_PREFIX}{self._count}_{path.stem}")
        module.__file__ = str(path.resolve())
        module.__package__ = _package_of(module.__file__)
        linecache.checkcache(module.__file__)
        sys.modules[module.__name__] = module  # annotations are looked up there
        folder = str(path.resolve().parent)
        sys.path.insert(0, folder)
        try:
            exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - as an import does
        except BaseException as problem:
            del sys.modules[module.__name__]
            if isinstance(problem, KeyboardInterrupt):
                raise
            raise CouldNot(
                f"{path}{_line_of(problem, module.__file__)}: {type(problem).__name__}: {problem}. What was loaded before is still in force."
            ) from problem
        finally:
            sys.path.remove(folder)
        return module


def _package_of(file: str) -> str | None:
    """The package of the module that is imported from the same file, so that its relative imports are found."""
    return next((each.__package__ for each in list(sys.modules.values()) if getattr(each, "__file__", None) == file), None)


def _line_of(problem: BaseException, file: str) -> str:
    if isinstance(problem, SyntaxError) and problem.lineno is not None:
        return f":{problem.lineno}"
    line, trace = 0, problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""


def _folded_by(module: ModuleType, state: type[Aggregate], category: str, app: App | None) -> App:
    own = [each for each in vars(module).values() if isinstance(each, type) and "__event_type__" in each.__dict__]
    upcasters: list[Callable[..., Any]] = [each for each in vars(module).values() if callable(each) and hasattr(each, "__upcasts__")]
    return with_aggregate(category, state, own, upcasters, app)


def _candidates(module: ModuleType) -> dict[str, str]:
    """Name → what it is, of everything that could be loaded; aggregates only when they were defined here."""
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, App | Projection):
            found[name] = type(value).__name__
        elif isinstance(value, type) and issubclass(value, Aggregate) and value.__module__ == module.__name__:
            found[name] = "Aggregate"
    return found


def _only_one(module: ModuleType, path: Path) -> str:
    found = _candidates(module)
    for kind in ("App", "Aggregate", "Projection"):
        names = [name for name, each in found.items() if each == kind]
        if len(names) == 1:
            return names[0]
        if names:
            raise click.UsageError(f"{path} has several: {', '.join(names)}. Say which: load {path}:{names[0]}")
    raise click.UsageError(f"{path} has nothing to fold with: an App, an Aggregate subclass or a Projection.")


def _offered(module: ModuleType) -> str:
    found = _candidates(module)
    return f"It has: {', '.join(found)}." if found else ""
