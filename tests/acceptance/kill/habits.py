"""Wrong programs: each does two things in the wrong order, as a careless change might. The kill tests must notice every one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.agents.models import idempotency_key
from intentlog.agents.plans import Ask, Commit
from intentlog.agents.turns import Turns
from intentlog.effector import phases
from intentlog.effector.carrying import Carrying, End
from intentlog.effector.effector import Effector
from intentlog.eventlog.log import Appended

Plan = Generator[Any, Any, Any]


def uses_an_answer_before_it_is_in_the_journal() -> None:
    """The agent goes on with what the provider said, and the journal gets it when the turn is decided (against S-4.1)."""
    drive: Callable[..., Plan] = Turns._drive
    held: dict[str, list[Any]] = {}

    def model(self: Turns, claim: Any, state: Any, ctx: Any, need: Any) -> Plan:
        client = self.app.models
        assert client is not None
        response = yield Ask(lambda: client.complete(need.request, idempotency_key=idempotency_key(claim.name, ctx.seq, need.step, need.digest)))
        self.boundary("model.answered", claim.name)
        cached = facts.ModelCallCached(ctx.seq, need.step, ctx.now_us, need.digest, need.request, response, ctx.seen)
        held.setdefault(claim.name, []).append(cached)
        return response

    def driving(self: Turns, claim: Any, state: Any, ctx: Any) -> Plan:
        end = yield from drive(self, claim, state, ctx)
        for cached in held.pop(claim.name, []):
            yield from self._journal(claim, state, ctx, cached, None)
            self.boundary("model.journalled", claim.name)
        return end

    setattr(Turns, "_model", model)  # noqa: B010 - the checker forbids to assign a method
    setattr(Turns, "_drive", driving)  # noqa: B010


def appends_a_turn_in_two_parts() -> None:
    """First the event of the aggregate, then the intents and the closing fact (against S-3.2)."""

    def appending(self: Turns, claim: Any, state: Any, folder: Any, seq: int, end: Any, last: bool) -> Plan:
        while True:
            base = state.version
            request = self.appends.turn(claim, state, folder, state.run.open[seq], end, last)
            (part,) = request.parts
            if len(part.events) < 2:
                outcome = yield Commit(request, True)
            else:
                fences = tuple(attrs.evolve(fence, release=False) for fence in request.fences)
                outcome = yield Commit(attrs.evolve(request, parts=(attrs.evolve(part, events=part.events[:1], wakes=()),), fences=fences))
            if not isinstance(outcome, Appended):
                yield from self._behind(state, outcome)
                continue
            if len(part.events) > 1:
                self.boundary("turn.appended", state.stream)
                yield Commit(attrs.evolve(request, parts=(attrs.evolve(part, events=part.events[1:], expected=base + 1),)), True)
            state.version = base + len(part.events)
            return

    setattr(Turns, "_append", appending)  # noqa: B010


def calls_a_tool_before_its_attempt_is_recorded() -> None:
    """The tool first, the record of it afterwards (against S-6.4)."""

    async def carry_out(self: Carrying, claim: Any, pending: Any, place: Any, *, last: bool = False) -> End:
        fit = phases.refuse_unfit(pending, self._tools, self._codec)
        assert not isinstance(fit, phases.Outcome)
        tool, bound = fit
        outcome = await phases.recover(pending, tool, bound, self._codec)
        if outcome is None:
            outcome = await phases.execute(pending, tool, bound, self._codec)
            self._boundary("tool.called", claim.name)
            await self._attempt(claim, pending)
        await self._settle(claim, pending, outcome, hand_back=False)
        return End.OVER

    setattr(Carrying, "carry_out", carry_out)  # noqa: B010


def saves_its_checkpoint_before_the_outcome() -> None:
    """How far the tail was read is saved when it was read, not when it was carried out (against S-6.8)."""
    go_round = Effector._round

    async def going_round(self: Effector) -> None:
        outbox = await self._following.drain()
        if outbox.cursor > self._following.saved:
            await self._following.save(outbox.cursor)
        await go_round(self)

    setattr(Effector, "_round", going_round)  # noqa: B010


HABITS: dict[str, Callable[[], None]] = {
    habit.__name__: habit
    for habit in (
        uses_an_answer_before_it_is_in_the_journal,
        appends_a_turn_in_two_parts,
        calls_a_tool_before_its_attempt_is_recorded,
        saves_its_checkpoint_before_the_outcome,
    )
}
