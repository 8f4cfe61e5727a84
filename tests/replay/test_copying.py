"""A copy shares nothing with its original that could change, and shares what cannot."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given

from intentlog.agents.streams import Folder
from intentlog.replay.copying import Copier, copied
from intentlog.replay.diff import same
from tests.replay.test_diff import trees
from tests.replay.world import STREAM, RefundAsked, app_of, paying


@attrs.define
class Box:
    held: Any


def shaken(value: Any) -> None:
    """Change everything in ``value`` that can be changed."""
    if isinstance(value, dict | list | set):
        inner = list(value.values()) if isinstance(value, dict) else list(value)
        value.clear()
    elif attrs.has(type(value)):
        inner = [getattr(value, field.name) for field in attrs.fields(type(value))]
    else:
        inner = list(value) if isinstance(value, tuple) else []
    for each in inner:
        shaken(each)


@given(trees)
def test_whatever_is_done_to_a_copy_the_original_stays(tree):
    from copy import deepcopy

    kept, copy = deepcopy(tree), copied(tree)
    assert same(tree, copy)
    shaken(copy)
    assert same(kept, tree)


def test_what_cannot_change_is_shared():
    fixed = ("text", 1, frozenset({"a"}), (1, ("b",)))
    assert fixed is copied(fixed)
    box = Box(fixed)
    assert (True, False) == (copied(box).held is fixed, copied(box) is box)


def test_what_is_one_object_in_the_original_is_one_in_the_copy():
    inner: list[int] = []
    copy = Copier().copy({"a": inner, "b": Box(inner)})
    assert copy["a"] is copy["b"].held
    assert copy["a"] is not inner


def test_a_copied_state_is_equal_and_goes_its_own_way(world):
    app = app_of(paying)
    world.story(app, RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    folder, rows = Folder(app.definitions["accounts"]), world.log.rows_of({STREAM: -1})[STREAM]
    for version in range(len(rows)):
        state = folder.fold(folder.empty(STREAM), rows[:version])
        copy = copied(state)
        assert state == copy
        folder.fold(state, rows[version:])
        folder.fold(copy, rows[version : version + 1])
        assert folder.fold(folder.empty(STREAM), rows[: version + 1]) == copy


class Opaque:
    """Nothing that attrs knows."""

    def __init__(self, held: list[list[int]]) -> None:
        self.held = held


def test_the_weight_of_a_copy_counts_everything_that_was_copied():
    few, many = Copier(), Copier()
    few.copy(Box([[]]))
    many.copy(Box([[n] for n in range(100)]))
    assert (3, 202) == (few.weight, many.weight)
    opaque = Copier()
    opaque.copy(Opaque([[n] for n in range(100)]))
    assert opaque.weight > 100
