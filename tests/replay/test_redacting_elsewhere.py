"""What was redacted in one event is given away by no digest in another one; what was not is left as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import App, agent
from intentlog.agents.client import Client
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.bundles import open_bundle, write_bundle
from tests.replay.wallets import PaidIn, Wallet
from tests.replay.world import World

STREAM = "accounts-acct-42"


@agent("accounts")
async def accounts(ctx: Any, cents: int) -> Any:
    wallet = await ctx.load(Wallet, "w1")
    wallet.emit(PaidIn(cents))
    ctx.send("friends", "f1", {"cents": cents})
    return (await ctx.approval("Pay?", cents=cents)).approved


@agent("friends")
async def friends(ctx: Any, told: dict[str, int]) -> None:
    return None


@pytest.fixture
def app(world: World) -> App:
    app = App(agents=[accounts, friends])
    world.send(app, 4200)
    world.run(app)
    Client(world.log, app).approve("accounts", "acct-42", "approval-0-2", by="ada")
    world.run(app)
    return app


def digests(log: Any) -> dict[str, bytes]:
    """Of all events that have one of something in another."""
    facts = {each.type: App(agents=[accounts, friends]).codec.decode_stored(each) for each in log.read(STREAM)}
    return {kind: facts[kind].digest for kind in ("aggregate.saved", "input.sent", "approval.decided")}


@pytest.mark.parametrize(
    ("path", "kind"),
    [("paid.in:cents", "aggregate.saved"), ("payload.cents", "input.sent"), ("approval.requested:details.cents", "approval.decided")],
)
def test_the_digest_of_what_was_redacted_goes_wherever_it_stands(world, app, tmp_path, path, kind):
    names = [STREAM, "friends-f1"]
    write_bundle(world.log, names, tmp_path / "r.bundle", app, [path])
    opened = open_bundle(tmp_path / "r.bundle")
    before, after = digests(world.log), digests(opened)
    assert {kind} == {each for each in before if before[each] != after[each]}
    changed = {event.version for event, old in zip(opened.read(STREAM), world.log.read(STREAM), strict=True) if event.data != old.data}
    assert changed == opened.redacted[STREAM]
    assert replay_stream(opened, app, STREAM).verdict in (Verdict.SAME, Verdict.CANNOT)


def test_the_digest_of_an_input_that_is_not_put_in_goes_with_whatever_is_redacted(world, app, tmp_path):
    write_bundle(world.log, [STREAM], tmp_path / "r.bundle", app, ["approval.decided:by"])
    before, after = digests(world.log), digests(open_bundle(tmp_path / "r.bundle"))
    assert {"input.sent", "approval.decided"} == {each for each in before if before[each] != after[each]}


def test_without_a_redaction_every_digest_stays(world, app, tmp_path: Path):
    write_bundle(world.log, [STREAM], tmp_path / "r.bundle", app)
    assert digests(world.log) == digests(open_bundle(tmp_path / "r.bundle"))
