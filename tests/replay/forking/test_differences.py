"""A fork beside its source as it is printed: what differs is seen, even where two lines read alike."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import attrs
import pytest

from intentlog.replay.forking.differences import fork_lines
from intentlog.replay.forking.edits import Edits, parse_edit
from intentlog.replay.forking.going_on import what_if
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying


@pytest.fixture
def app() -> Any:
    return app_of(paying)


def with_others(world: World, app: Any, kind: str, **others: Any) -> Any:
    """A fork that differs from its source in fields of one event only."""
    fork = what_if(world.log, app, STREAM)
    pieces = list(fork.pieces)
    place = next(place for place, piece in enumerate(pieces) if piece.type == kind)
    fact = app.codec.decode(kind, pieces[place].schema, pieces[place].data)
    pieces[place] = attrs.evolve(pieces[place], data=app.codec.encode(attrs.evolve(fact, **others))[2])
    return attrs.evolve(fork, pieces=tuple(pieces), first=0)


@pytest.mark.parametrize(
    ("kind", "others", "said"),
    [
        ("activation.completed", {"now": 1_764_407_642_000_250}, ["now: 2025-11-29T09:14:01.000000+00:00 → 2025-11-29T09:14:02.000250+00:00"]),
        ("activation.completed", {"step": 77, "seen": 3}, ["step: 2 → 77"]),
        ("activation.completed", {"seen": 3}, []),
    ],
)
def test_what_differs_in_lines_that_read_alike_is_told_below_them(world, app, kind, others, said):
    world.story(app, RefundAsked("o-1", 4200))
    lines = list(fork_lines(world.log, app, with_others(world, app, kind, **others), width=300))
    told = [line.strip() for line in lines if line.startswith(" " * 10) and line.strip()]
    signs = [line.split()[0] for line in lines[1:] if line.split()[0] in "-+"]
    assert said == told
    assert signs == (["-", "+"] if said else [])


@pytest.mark.parametrize("width", [60, 80, 300])
def test_no_two_lines_of_source_and_fork_read_alike_without_a_word_about_it(world, app, width):
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    for edit in ("response.text=yes, of course, and this goes on and on and on", "response.text=yes", "value={}"):
        version = 2 if edit.startswith("response") else 1
        fork = what_if(world.log, app, STREAM, None, Edits((parse_edit(version, edit),)))
        lines = list(fork_lines(world.log, app, fork, width=width))
        before = {line[10:] for line in lines if line.startswith("  -")}
        for line, below in pairwise(lines):
            if line.startswith("  +") and line[10:] in before:
                assert below.startswith(" " * 10)
