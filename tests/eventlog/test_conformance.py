"""Every store keeps every promise of the kit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from intentlog.eventlog.clock import Clock
from intentlog.eventlog.memory import open_memory
from intentlog.eventlog.testing import CHECKS, StoreMaker, check_log


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_store_keeps_the_promise(maker: StoreMaker, check: Callable[[StoreMaker], None]) -> None:
    check(maker)


def test_every_check_says_what_it_promises_and_has_a_name_of_its_own() -> None:
    assert [] == [check.__name__ for check in CHECKS if not check.__doc__]
    assert len(CHECKS) == len({check.__name__ for check in CHECKS})


class Forgetful:
    """A log that says -1 whatever the stream's head is."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._log = open_memory(clock=clock)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def head(self, stream: str) -> int:
        return -1


def test_a_store_that_breaks_a_promise_is_found_out_by_name() -> None:
    with pytest.raises(AssertionError) as caught:
        check_log(StoreMaker("forgetful", Forgetful))  # type: ignore[arg-type, unused-ignore]
    (note,) = caught.value.__notes__
    assert note.startswith("forgetful: ")
    assert "expected_version_matrix" in note
