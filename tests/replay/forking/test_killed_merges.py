"""A merge that is killed between any two of its writes is finished by the next one, and one mail is sent all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from examples.outbox.shop import STREAM, Mail, Shop
from intentlog.eventlog import open_log
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.replay import Verdict, replay_all
from intentlog.replay.errors import MergeRefused
from intentlog.replay.forking.begun import is_merged
from intentlog.replay.forking.bringing_back import carry_out, plan_merge
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import live_name, write_live
from tests.replay.forking.test_outbox import FORK, decides, merge


class Killed(BaseException):
    """What a process that is killed does from then on: nothing, not even what it does when it fails."""


@pytest.fixture
def late() -> list[int]:
    """By how much the clocks are ahead."""
    return [0]


@pytest.fixture(params=["two logs", "one log"])
def sides(request: Any, late: list[int]) -> Iterator[tuple[Shop, Shop]]:
    mail = Mail()
    first, second = (open_log("memory://", clock=lambda: system_clock() + late[0]) for _ in range(2))
    source = Shop(first, mail)
    fork = Shop(second, mail) if request.param == "two logs" else source
    source.confirm("in-1")
    made = what_if(source.log, source.app, STREAM, approvals=False)
    write_live(made, source.app, fork.log, live_name(fork.log, STREAM), source_log="memory://", by="ann")
    yield source, fork
    first.close()
    second.close()


def killed(source: Shop, fork: Shop, writes: int) -> None:
    """A merge whose process is killed behind so many of its writes."""
    done = [0]
    with pytest.MonkeyPatch.context() as patch:
        kind: Any = type(source.log)
        append = kind.append_batch

        def append_batch(log: Any, requests: Any) -> Any:
            if done[0] == writes:
                raise Killed
            done[0] += 1
            return append(log, requests)

        patch.setattr(kind, "append_batch", append_batch)
        patch.setattr(type(source.log.schedule), "release", lambda *_, **__: None)
        try:
            merge(source, fork)
        except Killed:
            assert done[0] == writes


@pytest.mark.parametrize("writes", range(4))
@pytest.mark.parametrize("before", ["the fork had sent it", "the source had sent it", "nobody had sent it", "the fork had decided it"])
@pytest.mark.parametrize("meanwhile", ["left alone", "worked on"])
def test_a_killed_merge_is_finished_by_the_next(sides, late, writes, before, meanwhile):
    source, fork = sides
    if source is fork:
        decides(source)
    elif before == "the fork had sent it":
        decides(source)
        fork.run()
    elif before == "the source had sent it":
        decides(fork)
        source.run()
    elif before == "nobody had sent it":
        decides(source)
        decides(fork)
    else:
        decides(fork)
    killed(source, fork, writes)
    if not is_merged(fork.log, FORK):
        with pytest.raises(MergeRefused, match="cannot be merged at this moment"):
            merge(source, fork)
        late[0] = 61 * SECOND
        if meanwhile == "worked on" and writes:  # before anything is written the two have nothing to do with each other, and each sends its own
            fork.run()
        plan = plan_merge(source.log, fork.log, source.app, FORK)
        assert () == plan.plan.conflicts
        carry_out(plan, source.log, fork.log, source.app, by="bob")
    assert is_merged(fork.log, FORK)
    late[0] = 122 * SECOND
    source.run()
    fork.run()
    assert {Verdict.SAME} == {each.verdict for shop in (source, fork) for each in replay_all(shop.log, shop.app)}
    assert ["notify:42"] == source.mail.sent
