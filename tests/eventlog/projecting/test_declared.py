"""What may be declared, and what a version's view is called."""

from __future__ import annotations

from typing import Any

import pytest

from intentlog.agents import App, agent
from intentlog.eventlog.errors import InvalidName, RegistrationError
from intentlog.eventlog.log import View
from intentlog.eventlog.projecting.declared import version_in, view_of
from intentlog.eventlog.projections import Projection, Projections


def nothing(view: View, stored: object, decoded: object) -> None:
    """Leave the view as it is."""


def test_each_version_has_a_view_of_its_own() -> None:
    assert ["p@v1", "p@v2"] == [Projection("p", nothing).view, Projection("p", nothing, version=2).view]


@pytest.mark.parametrize("name", ["p", "open orders", "é", "a.b-c", "x@y"])
def test_name_and_version_are_told_from_the_view(name: str) -> None:
    assert (name, 12) == version_in(view_of(name, 12))


@pytest.mark.parametrize("view", ["effector", "p@v0", "p@v", "@v1", "p@v01", "p@v1x", "p@v-1", ""])
def test_what_is_no_view_of_a_projection_is_told_apart(view: str) -> None:
    assert None is version_in(view)


@pytest.mark.parametrize("name", ["", "a@b", "a\nb", "\ud800", 7, None])
def test_a_name_that_could_not_be_read_back_is_refused(name: Any) -> None:
    with pytest.raises(InvalidName, match="names no projection"):
        Projection(name, nothing)


@pytest.mark.parametrize("version", [0, -1, True, "2", 1.0])
def test_versions_are_whole_numbers_from_1_on(version: Any) -> None:
    with pytest.raises(InvalidName, match=r"version of projection 'p'.*not"):
        Projection("p", nothing, version=version)


def test_one_text_is_no_list_of_types() -> None:
    with pytest.raises(InvalidName, match=r"types=\('order.placed',\)"):
        Projection("p", nothing, types="order.placed")  # type: ignore[arg-type]


def test_the_newest_declared_version_is_found_unless_one_is_named() -> None:
    first, second, other = Projection("p", nothing), Projection("p", nothing, version=2), Projection("q", nothing)
    declared = Projections([first, second, other])
    assert (second, first, other) == (declared.find("p"), declared.find("p", 1), declared.find("q"))
    assert (None, None, ["p", "q"], 3) == (declared.find("p", 3), declared.find("r"), declared.names(), len(declared))


def test_one_version_declared_twice_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"Two projections are declared as p@v1.*version=2"):
        Projections([Projection("p", nothing), Projection("p", nothing)])


def test_what_is_no_projection_is_refused() -> None:
    with pytest.raises(RegistrationError, match="'p' is no projection"):
        Projections(["p"])  # type: ignore[list-item]


def test_an_app_declares_projections_that_its_codec_decodes_for() -> None:
    @agent("notes")
    async def notes(ctx: Any, text: str) -> str:
        return text

    app = App(agents=[notes], projections=[Projection("p", nothing)])
    assert (["p"], app.codec, 0) == (app.projections.names(), app.projections.codec, len(App(agents=[notes]).projections))
