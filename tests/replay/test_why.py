"""Why a part is as it is: without the event that is named it would be otherwise, or the rest could not have happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.agents import Aggregate, Complete, applies
from intentlog.agents.errors import AgentError
from intentlog.agents.streams import Folder
from intentlog.eventlog.errors import LogError
from intentlog.eventlog.names import category_of
from intentlog.replay.diff import same
from intentlog.replay.errors import NoSuchPath
from intentlog.replay.fold import state_as_tree
from intentlog.replay.paths import ABSENT, look, parse_path, path_text
from intentlog.replay.walking import Walk
from intentlog.replay.why import Why, Without, why, why_here
from intentlog.replay.why_lines import why_lines, why_tree
from tests.acceptance.programs.living import STREAM as PROGRAM
from tests.acceptance.programs.living import lived
from tests.replay.histories import moves, played
from tests.replay.world import STREAM, RefundAsked, RefundPaid, World, app_of, paying

PATHS = ("refunded_cents", "orders", "orders['o-1']", "run.inputs", "run.line", "run.intents", "run.spent.tokens", "run.activations[0].state", "state", "run")


def folded(app: Any, stream: str, rows: list[Any], path: tuple[Any, ...]) -> Any:
    """What stands at ``path`` when just these rows are folded; ``None`` when they are no history."""
    folder = Folder(app.definitions[category_of(stream)])
    try:
        return look(state_as_tree(folder.fold(folder.empty(stream), rows)), path)
    except (AgentError, LogError):
        return None


def is_true(found: Why, app: Any, rows: list[Any]) -> None:
    """The answer, against folds that know nothing of it."""
    path, at = found.path, found.at
    values = [folded(app, found.stream, rows[: n + 1], path) for n in range(-1, at + 1)]
    changed = [version for version in range(at + 1) if not same(values[version], values[version + 1])]
    assert changed[::-1][: len(found.changes)] == [touch.version for touch in found.changes]
    assert same(values[-1], found.value)
    assert found.more == (len(changed) > len(found.changes))
    if found.last is None:
        assert [] == changed
        return
    without = folded(app, found.stream, [row for row in rows[: at + 1] if row[0] != found.last.version], path)
    expected = Without.REFUSED if without is None else Without.SAME if same(without, found.value) else Without.CHANGED
    assert expected is found.without
    if expected is Without.SAME:
        gone = {found.last.version, *found.also}
        assert not same(folded(app, found.stream, [row for row in rows[: at + 1] if row[0] not in gone], path), found.value)


@settings(max_examples=12, deadline=None)
@given(moves, st.sampled_from(PATHS), st.floats(0, 1), st.sampled_from([1, 4, 64]))
def test_without_the_event_that_is_named_the_part_is_another_or_the_rest_is_no_history(happened, text, share, spacing):
    app = app_of(paying)
    world = played(app, happened)
    try:
        walk = Walk(world.log, app, STREAM, spacing=spacing)
        rows = world.log.rows_of({STREAM: -1})[STREAM]
        try:
            is_true(why_here(walk, parse_path(text), round(share * walk.head), most=4), app, rows)
        except NoSuchPath:
            at = round(share * walk.head)
            assert all(folded(app, STREAM, rows[: n + 1], parse_path(text)) is ABSENT for n in range(-1, at + 1))
    finally:
        world.log.close()


@pytest.mark.parametrize("seed", [5, 17, 40])
def test_so_it_is_in_linear_programs(seed):
    world = lived(seed)
    walk = Walk(world.log, world.app, PROGRAM, spacing=8)
    rows = world.log.rows_of({PROGRAM: -1})[PROGRAM]
    for text in ("count", "last", "run.completed", "run.line", "run.spent"):
        for at in (walk.head, walk.head // 2):
            is_true(why_here(walk, parse_path(text), at, most=3), world.app, rows)
    world.log.close()


class Last(Aggregate):
    cents: int = 0

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> Last:
        return self.evolve(cents=e.cents)


def test_what_others_set_as_well_is_said(world):
    async def setting(ctx: Any, asked: RefundAsked) -> Complete:
        ctx.emit(RefundPaid("r", asked.cents))
        return Complete()

    app = app_of(setting, state=Last)
    world.story(app, *[RefundAsked("o", cents) for cents in (3, 5, 5, 5)])
    found = why(world.log, app, STREAM, parse_path("cents"))
    assert found.last is not None
    assert (4, 5, Without.SAME, {7, 10}) == (found.last.version, found.value, found.without, set(found.also))


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    return world


def test_it_is_asked_of_the_past_as_well(told):
    found = why(told.log, app_of(paying), STREAM, parse_path("refunded_cents"), 12)
    assert (42, [9]) == (found.value, [touch.version for touch in found.changes])


def test_a_part_that_is_gone_has_a_last_change_too(told):
    intent = next(iter(Walk(told.log, app_of(paying), STREAM, 6).state.run.intents))
    found = why(told.log, app_of(paying), STREAM, ("run", "intents", intent[:6]))
    assert (ABSENT, 10, "activation.completed") == (found.value, found.changes[0].version, found.changes[0].type)


def test_a_part_that_never_changed_is_no_error(told):
    found = why(told.log, app_of(paying), STREAM, parse_path("run.blocked"))
    assert ("", None, None, ()) == (found.value, found.last, found.without, found.causes)


def test_a_part_that_never_was_is_told_with_what_there_is(told):
    with pytest.raises(NoSuchPath, match=f"{STREAM}: nothing stands at refund_cents; state has refunded_cents"):
        why(told.log, app_of(paying), STREAM, parse_path("refund_cents"))
    assert "refund_cents" == path_text(parse_path("refund_cents"))


def test_an_input_that_another_run_sent_says_under_which_id_to_go_on(world):
    async def passing_on(ctx: Any, asked: RefundAsked) -> Complete:
        if asked.cents > 1:
            ctx.send("accounts", "acct-43", RefundAsked(asked.order_id, 1))
        ctx.emit(RefundPaid("r", asked.cents))
        return Complete()

    app = app_of(passing_on)
    world.story(app, RefundAsked("o-1", 9))
    sent, first = (why(world.log, app, stream, parse_path("refunded_cents")) for stream in ("accounts-acct-43", STREAM))
    assert (sent.causes[-1].event.input_id, "") == (sent.beyond, first.beyond)
    assert f"eventlog trace '{sent.beyond}'" in "\n".join(why_lines(sent, app.codec, width=100))
    assert sent.beyond == why_tree(sent, app.codec)["beyond"]


def test_what_is_told_fits_the_width(told):
    from rich.cells import cell_len

    app = app_of(paying)
    for text in PATHS:
        for width in (60, 80, 120):
            lines = list(why_lines(why(told.log, app, STREAM, parse_path(text), most=2), app.codec, width=width))
            assert [] == [line for line in lines if cell_len(line) > width]
