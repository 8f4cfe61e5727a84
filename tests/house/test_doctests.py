"""The examples in docstrings are true, under the names the rooms are installed by."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.house.tree import modules

OPTIONAL = ("psycopg", "kafka", "redis")
NAMES = ["intentlog." + ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in modules() if path.name != "__main__.py"]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_module_hold(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name not in OPTIONAL:
            raise
        # The module of an extra that is not installed: that it exists and parses is all there is to say.
        return
    assert 0 == doctest.testmod(module).failed


def test_there_are_examples_to_hold():
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert any(found.examples for found in finder.find(importlib.import_module("intentlog.eventlog.names")))
