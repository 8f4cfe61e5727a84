"""What the command's words mean: which projections the app declares, and which of them is spoken of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from ..console import MOST

if TYPE_CHECKING:
    from .declared import Projection, Projections

VERSION: Final = click.IntRange(1, MOST)


def version_option(command: Any) -> Any:
    """``--version N`` as the parameter ``version``."""
    return click.option("--version", metavar="N", type=VERSION, help="Which version.  [default: the newest that the app declares]")(command)


def declared_in(spec: str | None) -> Projections:
    """The projections of the app, or the ``Projections`` themselves, that ``spec`` names. Errors as in ``load_named``."""
    from ..loading import load_named

    found = load_named(
        spec, lambda value: _declared(value) is not None, "nothing that declares projections but of type {}. Declare them: App(…, projections=[…])."
    )
    declared = _declared(found)
    assert declared is not None
    return declared


def _declared(value: object) -> Projections | None:
    from inspect import getattr_static

    from .declared import Projections

    # Statically: looking for the one name that was meant must not run whatever else stands in the module.
    found = value if isinstance(value, Projections) else getattr_static(value, "projections", None)
    return found if isinstance(found, Projections) else None


def chosen(declared: Projections, name: str, version: int | None) -> Projection:
    """The projection to work with; raises a usage error that lists what there is."""
    found = declared.find(name, version)
    if found is None:
        there = ", ".join(sorted(each.view for each in declared)) or "none at all"
        wanted = name if version is None else f"{name}@v{version}"
        raise click.UsageError(f"The app declares no projection {wanted}; it has: {there}.")
    return found
