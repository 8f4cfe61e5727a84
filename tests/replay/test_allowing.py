"""The allow-list: what a line covers, what it does not, and that a wrong line is named."""

from __future__ import annotations

import pytest

from intentlog.replay import Divergence, Kind, Verdict
from intentlog.replay.allowing import Allowance, allowance_for, read_allowances, unused
from intentlog.replay.errors import BadAllowList
from intentlog.replay.replays import replay_all
from intentlog.replay.reports import replay_lines, summary_line
from intentlog.replay.verdicts import Summary
from tests.replay.test_divergences import code
from tests.replay.world import STREAM, RefundAsked, World, app_of

FOUND = Divergence("accounts-a#1", 5, "intent.staged", Kind.EVENT, 0, 0, 1, "'a'", "'b'", "messages[0].content (character 7)")


def covers(line: str) -> bool:
    (allowance,) = read_allowances(line)
    return allowance.covers(FOUND)


@pytest.mark.parametrize(
    ("line", "covered"),
    [
        ("accounts-a#1", True),
        ("accounts-*", True),
        ("accounts-?#1 5", True),
        ("accounts-a", False),
        ("* 4-6", True),
        ("* 6-9", False),
        ("* * messages[0].content", True),
        ("* 5 messages[0].*", True),
        ('* * "messages[0].content (character 7)"', True),
        ("* * messages[1].content", False),
        ("* * args.cents", False),
        ("accounts-a#1 5 # because of #12", True),
    ],
)
def test_a_line_covers_what_fits_all_its_words(line, covered):
    assert covered == covers(line)


def test_comments_and_empty_lines_are_no_lines_and_the_reason_is_kept():
    found = read_allowances('# what we know\n\norders-* 3  # see #12\n"a b" * x\n')
    assert (Allowance(3, "orders-*", 3, 3, why="see #12"), Allowance(4, "a b", field="x")) == found


@pytest.mark.parametrize("line", ["a 1 b c", "a five", "a 1-x b"])
def test_a_line_that_cannot_be_read_is_named(line):
    with pytest.raises(BadAllowList, match=r"known\.txt, line 2"):
        read_allowances(f"fine\n{line}", "known.txt")


def test_the_first_line_that_fits_is_used_and_the_others_are_told():
    found = read_allowances("orders-*\naccounts-* 5\naccounts-*")
    assert found[1] == allowance_for(found, FOUND)
    assert [1, 3] == [each.line for each in unused(found, [2])]


@pytest.fixture
def recorded(world: World) -> World:
    world.story(app_of(code()), RefundAsked("o-1", 4200), RefundAsked("o-2", 100))
    return world


def replayed(world: World, changed, text: str):
    (found,) = replay_all(world.log, app_of(changed), [STREAM], allowances=read_allowances(text))
    return found


def test_the_replay_goes_on_behind_what_is_allowed(recorded):
    found = replayed(recorded, code(cents=100), "accounts-* * args.cents  # rounding")
    assert (Verdict.ALLOWED, [1, 1], ["args.cents"] * 2) == (
        found.verdict,
        [each.line for each in found.excused],
        [each.divergence.field for each in found.excused],
    )
    assert recorded.log.head(STREAM) + 1 == found.events
    summary = Summary()
    summary.add(found)
    assert (0, "1 stream: 0 same 1 allowed") == (summary.exit_code, summary_line(summary).partition("  ")[0])
    assert "allowed by line 1: version 5 (intent.staged) args.cents" in "\n".join(replay_lines(found, width=100, notes=True))


def test_what_is_not_allowed_behind_what_is_stops_the_replay(recorded):
    found = replayed(recorded, code(cents=100), "* 0-9 args.cents")
    assert (Verdict.DIVERGED, 1, 1) == (found.verdict, len(found.excused), found.divergence.seq)
    assert found.divergence.version > 9
