"""Every dedup store keeps every promise of the kit, and the kit finds out those that do not."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from intentlog.effector.dedup import Busy, Claimed, Done
from intentlog.effector.dedup.checking import MARGIN
from intentlog.effector.dedup.memory import MemoryStore
from intentlog.effector.testing import DEDUP_CHECKS, DedupMaker, check_dedup


@pytest.mark.parametrize("check", DEDUP_CHECKS, ids=lambda check: check.__name__)
def test_the_store_keeps_the_promise(maker: DedupMaker, check: Callable[[DedupMaker], None]) -> None:
    check(maker)


def test_every_check_says_what_it_promises_and_has_a_name_of_its_own() -> None:
    assert [] == [check.__name__ for check in DEDUP_CHECKS if not check.__doc__]
    assert len(DEDUP_CHECKS) == len({check.__name__ for check in DEDUP_CHECKS})


class TakesWhatIsHeld(MemoryStore):
    def _claim(self, intent_id: str, owner: str, now: int, until: int, call: str) -> Claimed | Busy | Done:
        held = self._records.get(intent_id)
        if held is not None and held.until > now:
            self._records[intent_id] = attrs.evolve(held, until=0)
        return super()._claim(intent_id, owner, now, until, call)


class ForgetsAttempts(MemoryStore):
    def _attempt(self, intent_id: str, token: int, now: int, call: str) -> int:
        attempt = super()._attempt(intent_id, token, now, call)
        self._records[intent_id] = attrs.evolve(self._records[intent_id], attempts=0)
        return attempt


class LetsTheLastOneWin(MemoryStore):
    def _complete(self, intent_id: str, token: int, outcome: Done, now: int, expires_at: int) -> None:
        self._put(intent_id, attrs.evolve(self._records[intent_id], status=outcome.status, expires_at=expires_at), outcome.result)


class ShortensLeases(MemoryStore):
    def _renew(self, intent_id: str, token: int, until: int) -> bool:
        held = super()._renew(intent_id, token, until)
        if held:
            self._records[intent_id] = attrs.evolve(self._records[intent_id], until=until)
        return held


class GivesTokensTwice(MemoryStore):
    def _release(self, intent_id: str, token: int) -> None:
        super()._release(intent_id, token)
        self._records.pop(intent_id, None)


class RemovesTooSoon(MemoryStore):
    def _sweep(self, before: int, most: int) -> None:
        super()._sweep(before + MARGIN, most)


BROKEN = {
    TakesWhatIsHeld: "claim_is_exclusive",
    ForgetsAttempts: "attempts_are_kept_over_owners",
    LetsTheLastOneWin: "first_outcome_is_final",
    ShortensLeases: "clock_going_back_shortens_no_lease",
    GivesTokensTwice: "handing_back_frees_at_once",
    RemovesTooSoon: "removal_is_later_than_any_clock",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_store_that_breaks_a_promise_is_found_out_by_name(broken: type[MemoryStore]) -> None:
    with pytest.raises(AssertionError):
        {check.__name__: check for check in DEDUP_CHECKS}[BROKEN[broken]](DedupMaker("broken", lambda folder: broken()))
    with pytest.raises(AssertionError) as caught:
        check_dedup(DedupMaker("broken", lambda folder: broken()))
    assert caught.value.__notes__[0].startswith("broken: ")
