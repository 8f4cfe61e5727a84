"""Walking and looking: what each command answers, without a terminal."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intentlog.eventlog.console import COULD_NOT, FOUND, OK, USAGE
from intentlog.replay import state_at
from intentlog.replay.shell.names import LIVE
from tests.replay.long_history import record_long
from tests.replay.shell.conftest import session_over
from tests.replay.world import STREAM, RefundAsked


def test_it_begins_at_the_end_and_says_where_it_stands(session):
    assert (21, f"at 21  {STREAM} › ") == (session.at, session.prompt)


def test_one_event_back_shows_it_and_what_it_takes_away(session, tell):
    session.open(STREAM, 9)
    assert '▸    8  09:14:01.000  IntentSettled     25dd…  OK "re_o-1"  0 ms\n        ~ refunded_cents  4200 → 0\n' == tell("back")
    assert "▸    9  09:14:01.000  RefundPaid        receipt=re_o-1  cents=4200\n        ~ refunded_cents  0 → 4200\n" == tell("next")


def test_both_ends_are_told(session, tell):
    assert (f"this is the end: {STREAM} has no version after 21\n", FOUND) == (tell("next"), session.do("next").code)
    tell("goto start")
    assert (f"this is the beginning of {STREAM}\n", 0) == (tell("back"), session.at)


def test_several_events_at_once_stop_at_the_ends(session, tell):
    tell("back 4")
    assert 17 == session.at
    tell("back 400")
    assert 0 == session.at
    tell("next 400")
    assert 21 == session.at


@pytest.mark.parametrize(
    ("line", "at"), [("goto 7", 7), ("goto @8", 7), ("goto 2025-11-29T09:14:01.5", 10), ("goto start", 0), ("goto end", 21), ("goto now", 21)]
)
def test_a_place_is_named_in_many_ways(session, tell, line, at):
    session.open(STREAM, 13)
    tell(line)
    assert at == session.at


@pytest.mark.parametrize(
    ("line", "at"), [("next IntentSettled", 8), ("next intent.settled", 8), ("next RefundPaid", 9), ("back refund.asked", 3), ("back InputReceived", 0)]
)
def test_the_next_of_a_type_is_found_by_class_and_by_name(session, tell, line, at):
    session.open(STREAM, 5)
    tell(line)
    assert at == session.at


def test_until_something_holds_in_both_directions(session, tell):
    tell("goto start")
    tell("until st.refunded_cents > 4000")
    assert 9 == session.at
    tell('back until "not st.orders"')
    assert 2 == session.at
    tell("until ev.type == 'intent.settled' and ev.status == 'OK'")
    assert 8 == session.at


def test_what_never_holds_moves_nothing(session, tell):
    session.open(STREAM, 4)
    assert ("it holds at no version after 4\n", 4, FOUND) == (
        tell("until st.refunded_cents > 9000"),
        session.at,
        session.do("until st.refunded_cents > 9000").code,
    )


@pytest.mark.parametrize(
    "line",
    [
        "until )",
        "until __import__('os')",
        "until st.orders.pop()",
        "until open('x')",
        "break st.",
        "watch a..b",
        "until run.intnts",
        "break run.intnts",
        "watch run.intnts",
        "watch refunded_cens",
    ],
)
def test_an_expression_that_cannot_be_is_told_in_a_line(session, tell, line):
    said = tell(line)
    assert (True, 21) == (0 < len(said) < 500 and "Traceback" not in said, session.at)


@pytest.mark.parametrize("line", ["until run.intnts", "back until run.intnts", "break len(run.intnts) > 0", "watch run.intnts", "watch refunded_cens"])
def test_a_misspelt_field_is_told_with_the_nearest_and_is_neither_sought_nor_watched(session, tell, line):
    said = tell(line)
    assert ("refunded_cents" if "cens" in line else "intents") in said
    assert ([], {}) == (session.breaks, session.watches)


def test_a_break_stops_until_where_it_begins_to_hold(session, tell):
    tell("break st.refunded_cents > 100")
    tell("goto start")
    assert tell("until").endswith("        stopped by the break st.refunded_cents > 100\n")
    assert 9 == session.at
    assert "no break begins to hold after version 9\n" == tell("until")
    tell("break off 1")
    assert (USAGE, []) == (session.do("until").code, session.breaks)


def test_breaks_stop_an_until_that_asks_for_something_else(session, tell):
    tell("break 'o-2' in st.orders")
    tell("goto start")
    assert "stopped by the break 'o-2' in st.orders" in tell("until st.refunded_cents > 4203")
    assert 14 == session.at


def test_what_is_watched_is_shown_after_each_move(session, tell):
    session.open(STREAM, 8)
    assert "  orders  {'o-1'}\n" == tell("watch orders")
    assert tell("next").endswith("        ~ refunded_cents  0 → 4200\n        ◆ orders  {'o-1'}\n")
    assert tell("back 9").endswith("        ◆ orders  {'o-1'} → frozenset()\n")
    tell("watch off orders")
    assert "◆" not in tell("next")


def test_the_state_is_shown_whole_or_in_part(session, tell):
    assert "Account(refunded_cents=4207, orders={'o-1', 'o-2'})\n" == tell("st")
    assert ("{'o-1', 'o-2'}\n", "2\n", "nothing stands at nope; state has refunded_cents, orders\n") == (
        tell("st orders"),
        tell("st run.completed"),
        tell("st nope"),
    )
    session.open(STREAM, 9)
    assert "Account(refunded_cents=0, orders={'o-1'})\n" == tell("prev")


def test_an_event_is_shown_whole(session, tell):
    said = tell("ev 9")
    assert said.startswith("RefundPaid  refund.paid v1\n  version    9\n")
    assert said.endswith("RefundPaid(receipt='re_o-1', cents=4200)\n")


def test_the_story_around_here_marks_the_place(session, tell):
    session.open(STREAM, 9)
    lines = tell("log 1").splitlines()
    assert ["  … 8 earlier", "  … 11 later"] == [lines[0], lines[-1]]
    assert [" ", "▸", " "] == [line[0] for line in lines[2:-1]]
    assert 22 + 1 == len(tell("log all").splitlines())


def test_what_an_event_changed_run_included(session, tell):
    session.open(STREAM, 7)
    assert "  ~ run.intents['25ddf24b…'].state  'staged' → 'attempted'\n  ~ run.intents['25ddf24b…'].attempts  0 → 1\n" == tell("diff")
    assert "  ~ refunded_cents  0 → 4200\n" == tell("diff 0 9 refunded_cents")
    assert "the same at 7 and 7\n" == tell("diff 7")


@pytest.mark.parametrize("now", ["now", "end", "head", "last", "21", "@22", "2030-01-01"])
def test_diff_takes_every_name_of_a_place(session, tell, now):
    session.open(STREAM, 9)
    expected = tell("diff 10 21")
    assert ("~ refunded_cents  4200 → 4207" in expected, expected) == (True, tell(f"diff 10 {now}"))
    assert tell("diff 10 21 refunded_cents") == tell(f"diff 10 {now} refunded_cents")
    assert (FOUND, FOUND) == (session.do(f"diff 10 {now}").code, session.do(f"diff {now}").code)
    assert tell("diff 0 9") == tell("diff start 9")


def test_diff_to_now_sees_what_came_meanwhile(world, app, told_by):
    world.story(app, RefundAsked("o-1", 4200))
    session = session_over(world.log, app)
    session.open(STREAM)
    world.story(app, RefundAsked("o-9", 1))
    assert "  ~ refunded_cents  4200 → 4201\n" == told_by(session)("diff 10 now refunded_cents")


def test_what_may_come_later_may_be_watched(session, tell):
    session.open(STREAM, 0)
    assert ("  orders['o-1']  nothing there yet\n", "  orders['o-1']  nothing there yet\n") == (tell("watch orders['o-1']"), tell("watch"))
    tell("goto 9")
    assert "  orders['o-1']  'o-1'\n" == tell("watch")


def test_without_python_only_commands_are_taken(recorded, app, told_by, tmp_path):
    session = session_over(recorded, app, python=False)
    session.open(STREAM)
    tell = told_by(session)
    marker, code = tmp_path / "ran", tmp_path / "code.py"
    code.write_text(f"open({str(marker)!r}, 'w')\n")
    lines = [f"open({str(marker)!r}, 'w')", f"for each in [1]:\n    open({str(marker)!r}, 'w')\n", "st.orders", "exit()", f"load {code}", f"%run {code}", "!ls"]
    told = [" ".join(tell(line).split()) for line in [*lines, f"replay --app {code}:app", "nxt", "1 + 1"]]
    assert [] == [said for said in told if "--no-python" not in said]
    assert [] == [line for line in lines if session.do(line).code != USAGE]
    assert ("There is no command 'nxt'; did you mean 'next'? Python is off here (--no-python); this takes commands only: help", False) == (
        told[-2],
        marker.exists(),
    )
    assert "▸    9 " in tell("back until st.refunded_cents < 4201 and version < 10")


def test_python_sees_what_stands_at_the_cursor(session, tell):
    session.open(STREAM, 9)
    assert ("42.0\n", "{'o-1'}\n", "4200\n", "22\n") == (tell("st.refunded_cents / 100"), tell("prev.orders"), tell("ev.cents"), tell("len(log)"))
    assert ("RefundAsked(order_id='o-1', cents=4200)\n", "9\n") == (tell("log[3]"), tell("version"))
    tell("paid = [each for each in log if type(each).__name__ == 'RefundPaid']")
    assert "2\n" == tell("len(paid)")
    tell("def cents():\n    return st.refunded_cents\n")
    assert "4200\n" == tell("cents()")
    tell("back")
    assert "0\n" == tell("st.refunded_cents")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero\n"),
        ("zzz", "There is no command and no name 'zzz'. All commands: help\n"),
        ("nope.field", "NameError: name 'nope' is not defined\n"),
        ("nxt", "There is no command 'nxt'; did you mean 'next'?\n"),
        ("rubbish here", "There is no command 'rubbish'. All commands: help\n"),
        ("print st", "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?\n"),
        ("init", "The shell only reads. Outside of it: eventlog init\n"),
        ("diff a b", "'a' is neither a version nor a time, and 'a b' is no path: diff takes at most two places and a path: diff 3 8 open_orders, diff 3 now\n"),
        ("diff 1 2 orders b", "'orders b' is no path: diff takes at most two places and a path: diff 3 8 open_orders, diff 3 now\n"),
        ("diff 3 9 refunded_cent", "nothing stands at refunded_cent; state has refunded_cents … (at version 3 as at 9)\n"),
        ("diff refunded_cent", "nothing stands at refunded_cent; state has refunded_cents … (at version 20 as at 21)\n"),
        ("watch refunded_cent", "nothing stands at refunded_cent; state has refunded_cents …. Nothing is watched there.\n"),
        ("watch run.intent", "nothing stands at run.intent; run has intents, line …. Nothing is watched there.\n"),
        ("ev soon", "'soon' is no place in a stream: give a version (17), a position (@1234), a moment (2026-01-31T09:14:02.113) or now\n"),
        ("bakc 3", "There is no command 'bakc'; did you mean 'back'?\n"),
        ("goto 99", f"{STREAM} has no version 99: its versions are 0 to 21\n"),
        ("3 +", "SyntaxError: invalid syntax\n"),
        ("goto", "Say where: goto 17, goto @1234, goto 2026-01-31T09:14:02, goto start, goto now\n"),
    ],
)
def test_what_goes_wrong_is_told_in_a_line(session, tell, line, says):
    assert (says, True) == (" ".join(tell(line).splitlines()) + "\n", session.do(line).code in (USAGE, COULD_NOT))


def test_a_fault_of_its_own_does_not_end_it(session, told_by):
    def at_fault(session, rest):
        raise KeyError("x")

    session.commands, session.debug = {**session.commands, "next": at_fault}, False
    assert "unexpected KeyError: 'x'\nWhere it came from: the same command with EVENTLOG_DEBUG=1\n" == told_by(session)("next")


def test_what_python_does_to_the_state_reaches_no_history(session, tell):
    session.open(STREAM, 9)
    tell("run.intents.clear()")
    tell("back")
    tell("next")
    assert "1\n" == tell("len(run.intents)")


def test_no_name_that_python_finds_leads_to_the_log(session):
    live = session.live()
    assert set(LIVE) == set(live)
    assert [] == [name for name, made in live.items() if hasattr(made(), "append_batch") or hasattr(made(), "schedule")]


def test_events_that_come_meanwhile_are_found(world, app, told_by):
    world.story(app, RefundAsked("o-1", 4200))
    session = session_over(world.log, app)
    session.open(STREAM)
    world.story(app, RefundAsked("o-9", 1))
    assert told_by(session)("next").startswith("▸   11 ")
    assert 21 == session.walk.head


@pytest.mark.parametrize("line", ["quit", "exit", "exit()", "raise SystemExit"])
def test_there_is_a_way_out(session, line):
    assert session.do(line).over


def test_another_stream_is_opened_and_close_ones_named(session, tell):
    assert tell("open accounts-acct-43").startswith("▸   10 ")
    assert ("at 10  accounts-acct-43 › ", True) == (session.prompt, "There is accounts-acct-4" in tell("open accounts-acct-4"))


def test_without_a_stream_everything_says_so(recorded, app, told_by):
    session = session_over(recorded, app)
    tell = told_by(session)
    assert ("no stream › ", "No stream is open. List them with: streams   and open one with: open NAME\n") == (session.prompt, tell("next"))
    assert "2\n" == tell("1 + 1")


def test_help_fits_the_screen_and_names_every_command(session, tell):
    said = tell("help")
    assert [] == [word for word in session.commands if word not in said]
    assert [] == [line for line in said.splitlines() if len(line) > 80 or line.endswith("…")]
    assert "  back [N|TYPE|until EXPR]  the same backwards\n" == tell("help back")


def test_recorded_control_characters_stay_out_of_the_terminal(world, app, told_by):
    world.story(app, RefundAsked("\x1b[2J\u202eevil", 1))
    session = session_over(world.log, app)
    session.open(STREAM)
    tell = told_by(session)
    said = "".join(map(tell, ["log all", "st", "goto 3", "ev", "diff", "run", "step", "watch orders", "goto 0", "st.orders", "log[3].order_id"]))
    assert [] == [char for char in said if char in "\x1b\u202e"]


@given(
    moves=st.lists(st.sampled_from(["next", "back", "next 3", "back 4", "goto 0", "goto 11", "next RefundPaid", "back Completed", "until 'o-2' in st.orders"]))
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wherever_it_went_the_state_is_that_of_a_fresh_fold(session, app, moves):
    for move in moves:
        assert session.do(move).code in (OK, FOUND)
        assert state_at(session.log, app, STREAM, session.at).state == session.walk.state.state


def test_a_long_history_is_walked_without_waiting(world, app, told_by):
    record_long(world.log, app, 20_000)
    session = session_over(world.log, app)
    session.open(STREAM)
    tell = told_by(session)
    slow = {}
    for line in ("back", "back 9000", "next", "st", "log", "ev", "diff", "goto 3", "prev"):
        begun = time.process_time()
        tell(line)
        slow[line] = time.process_time() - begun
    assert {} == {line: took for line, took in slow.items() if took > 1.0}
