"""What a copy of a history asks was asked before, of the same people: it is not published again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from intentlog.agents import App, Client, agent
from intentlog.agents.queues import EFFECTS
from intentlog.effector.approvals.copies import Whose, whose
from intentlog.effector.process import Process
from intentlog.eventlog.clock import SECOND
from intentlog.eventlog.opening import open_log
from intentlog.replay.forking.edits import Edits
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.forking.writing import live_name, write_copy, write_live
from tests.effector.approvals.surface import CODEC, Surface, ask
from tests.effector.approvals.test_publishing import serve


@agent("desk")
async def desk(ctx: Any, cents: int) -> Any:
    return (await ctx.approval("Pay?", timeout=timedelta(hours=1), cents=cents)).approved


APP = App(agents=[desk])


def test_a_copy_asks_nobody_again_and_a_fork_that_goes_on_for_real_does(tmp_path: Path):
    source = open_log("memory://")
    Client(source).send("desk", "ann", 5, id="i")
    asyncio.run(Process(APP, source, "w", with_effector=False).run(until_idle=True))
    place = f"sqlite:///{tmp_path}/copies.db"
    open_log(place).close()
    write_copy(what_if(source, APP, "desk-ann", None, Edits(), approvals=True), place, source_log="", by="ada")
    copies = open_log(place)
    ask(copies, "bob")
    live = live_name(copies, "desk-ann")
    write_live(what_if(source, APP, "desk-ann", None, Edits(), approvals=False), APP, copies, live, source_log="", by="ada")
    with Surface() as surface:
        serve(copies, surface)
        assert [("desk-ann~fork1", "approval-0-0"), ("desk-bob", "approval-0-0")] == sorted(surface.asked())
        assert copies.last_position() == copies.checkpoints.load("approvals")
    assert [Whose.COPIED, Whose.OWN, Whose.OWN] == [whose(copies, CODEC, each, "r") for each in ("desk-ann", "desk-bob", live)]
    copies.close()
    source.close()


def test_while_a_copy_is_being_written_nobody_is_sure():
    log = open_log("memory://")
    ask(log, "ann")
    now = log.clock()
    log.schedule.acquire(EFFECTS, ["desk-ann"], "an effector", now=now, until=now + 60 * SECOND)
    assert Whose.OWN is whose(log, CODEC, "desk-ann", "r")  # no copies here: nothing holds it up
    log.schedule.acquire(EFFECTS, ["desk-bob"], "fork: effects are off", now=now, until=2**62)
    ask(log, "bob")
    ask(log, "eve")
    assert [Whose.UNSURE, Whose.UNSURE, Whose.OWN] == [whose(log, CODEC, f"desk-{key}", "r") for key in ("ann", "bob", "eve")]
    log.close()
