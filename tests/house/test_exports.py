"""What a room offers is written down, exists, and has a docstring."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from tests.house.tree import ROOMS, modules

PACKAGES = ["intentlog." + ".".join(path.parent.parts) for path in modules() if path.name == "__init__.py"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_offers(room):
    assert getattr(importlib.import_module(f"intentlog.{room}"), "__all__", [])


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_offered_exists_and_is_listed_once(name):
    package = importlib.import_module(name)
    offered = list(getattr(package, "__all__", []))
    assert [] == [each for each in offered if not hasattr(package, each)]
    assert len(set(offered)) == len(offered)


@pytest.mark.parametrize("name", PACKAGES)
def test_classes_and_functions_on_offer_explain_themselves(name):
    package = importlib.import_module(name)
    offered = [(each, getattr(package, each)) for each in getattr(package, "__all__", [])]
    assert [] == [each for each, value in offered if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value)]


def test_the_one_name_has_no_facade():
    # A namespace: any other distribution that put an intentlog/__init__.py there would hide the rooms.
    assert "intentlog.eventlog" in sys.modules or importlib.import_module("intentlog.eventlog")
    assert None is getattr(sys.modules["intentlog"], "__file__", None)
