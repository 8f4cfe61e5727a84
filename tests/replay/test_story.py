"""The story of a stream, line by line, with and without its app."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rich.cells import cell_len

from intentlog.agents import ActivationContext, Suspend
from intentlog.agents.errors import ModelFailed
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import ANY
from intentlog.replay.story import Line, as_text, story
from tests.replay.world import STREAM, Model, RefundAsked, World, app_of, notify, paying, refund

APP = app_of(paying)


def told(world: World, app: Any = APP, **options: Any) -> list[str]:
    return [as_text(line, versions=2, names=16, width=100) for line in story(world.log, STREAM, app, **options)]


def test_a_run_of_two_turns(world):
    world.clock.tick(2.113)
    world.send(APP, RefundAsked("o-1", 4200))
    world.clock.tick(1.758)
    world.run(APP, effector=False)
    world.clock.tick(0.408)
    world.run(APP)
    assert [
        "  09:14:02.113   0  InputReceived     refund.asked  cents=4200  order_id=o-1  (in-1)",
        '  09:14:03.871   1  ToolCallCached    read 0  lookup  order_id=o-1 → {"items": 3}',
        '                 2  ModelCallCached   step 0  model-x  212 → 31 tokens  "yes"',
        "                 3  RefundAsked       order_id=o-1  cents=4200",
        "                 4  Traced            decided  answer=yes",
        "                 5  IntentStaged      step 1  refund  25dd…  expires 10:14  cents=4200  order_id=o-1",
        "                 6  Suspended         waits for 25dd…  until 09:19:03",
        "  09:14:04.279   7  IntentAttempted   25dd…  attempt 1 by e",
        '                 8  IntentSettled     25dd…  OK "re_o-1"  0 ms',
        "                 9  RefundPaid        receipt=re_o-1  cents=4200",
        '                10  Completed         "re_o-1"',
    ] == told(world)


def test_without_the_app_users_events_are_trees_under_their_type(world):
    world.story(APP, RefundAsked("o-1", 4200))
    assert "                 3  refund.asked      cents=4200  order_id=o-1" == told(world, None)[3]
    assert [line[30:] for line in told(world)][4:9] == [line[30:] for line in told(world, None)][4:9]


async def late(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
    if ctx.is_resume:
        return [result.status for result in ctx.resume_results]
    ctx.act(refund, order_id="a", cents=1, key="pay:a")
    ctx.act(notify, text="fail")
    ctx.arm(timedelta(seconds=30))
    return Suspend(timeout=timedelta(seconds=90))


def test_a_deadline_a_late_outcome_and_a_failed_effect(world):
    app = app_of(late)
    world.send(app, RefundAsked("o-1", 1))
    world.run(app, effector=False)
    world.clock.tick(31)
    world.run(app, effector=False)
    world.clock.tick(60)
    world.run(app, effector=False)
    world.run(app)
    lines = [line[20:] for line in told(world, app)]
    assert "IntentStaged      step 0  refund  5448…  expires 10:14  key pay:a  cents=1  ord…" == lines[1]
    assert "TimerArmed        step 2  timer-0-2  fires 09:14:30" == lines[3]
    assert "Suspended         waits for 5448…, 25dd…, timer-0-2  until 09:15:30" == lines[4]
    assert "TimerFired        timer-0-2" == lines[5]
    assert "TimerFired        deadline of 09:15:30 passed; nothing from 5448…, 25dd…" == lines[6]
    assert 'IntentSettled     5448…  OK "re_a"  0 ms  late' == lines[9]
    assert "IntentSettled     25dd…  ERROR ValueError: no such address  0 ms  late" == lines[11]


def test_a_failure_says_when_it_is_tried_again(world):
    app = app_of(paying, Model(ModelFailed("503")))
    world.story(app, RefundAsked("o-1", 4200))
    for _ in range(2):
        world.clock.tick(10)
        world.run(app)
    failures = [line[20:] for line in told(world, app) if "ActivationFailed" in line]
    assert "ActivationFailed  attempt 1  at step 1  again at 09:14:02  ModelFailed: 503" == failures[0]
    assert "ActivationFailed  attempt 3  at step 1  parked  ModelFailed: 503" == failures[2]


def test_no_line_is_wider_than_its_terminal_and_no_control_character_reaches_it(world):
    async def wordy(ctx: ActivationContext[Any], asked: RefundAsked) -> Any:
        ctx.trace("漢字" * 90, escape="\x1b[31m\n" * 30)
        return {"long": ["word"] * 100}

    app = app_of(wordy)
    world.story(app, RefundAsked("o" * 400, 1))
    lines = told(world, app)
    assert all(cell_len(line) <= 100 for line in lines)
    assert not any(char in line for line in lines for char in "\x1b\n")
    assert 3 == sum(line.endswith("…") for line in lines)


def test_events_that_nobody_can_read_are_told_all_the_same(world):
    world.log.append(STREAM, [NewEvent(b"1" * 16, "gone.for_good", 7, b"\xc1"), NewEvent(b"2" * 16, "intent.settled", 9, b"\x80")], ANY)
    first, second = told(world)
    assert "gone.for_good     cannot be read: not one MessagePack value" in first
    assert "intent.settled    cannot be read: intent.settled was written under schema versi…" in second


def test_a_part_of_the_story_knows_what_came_before(world):
    world.send(APP, RefundAsked("o-1", 4200))
    world.run(APP)
    (line,) = told(world, first=8, last=8)
    assert '  09:14:00.000   8  IntentSettled     25dd…  OK "re_o-1"  0 ms' == line


def test_a_line_as_json_has_everything(world):
    world.story(APP, RefundAsked("o-1", 4200))
    line: Line = list(story(world.log, STREAM, APP))[3]
    tree = line.as_tree()
    assert ("refund.asked", 3, 4, "2025-11-29T09:14:01.000000+00:00") == tuple(tree[name] for name in ("type", "version", "position", "time"))
    assert {"order_id": "o-1", "cents": 4200} == tree["fields"]
