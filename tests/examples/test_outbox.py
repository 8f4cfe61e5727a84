"""The seven outbox cases hold, and the program that prints them does."""

from __future__ import annotations

import sys

import pytest

from examples.outbox.cases import CASES
from tests.acceptance.harness import ROOT, run


@pytest.mark.parametrize("name", CASES)
def test_an_outbox_case_holds(name):
    assert CASES[name]()


def test_the_seven_lines_are_printed():
    ended = run([sys.executable, "-m", "examples.outbox"], cwd=ROOT)
    assert (0, [f"{number}. {name}" for number, name in enumerate(CASES, 1)]) == (ended.code, [line[:23].rstrip() for line in ended.output.splitlines()])
