"""What is left to be published, as the tail tells it."""

from __future__ import annotations

from intentlog.agents import facts
from intentlog.effector.approvals.pending import Questions
from intentlog.eventlog.events import StoredEvent

CHANGES = {"answered": facts.ApprovalDecided("a1", b"d", True, "ann"), "given up": facts.ApprovalUndelivered("a1", "sink", "410", 5, "e")}


def event(position: int, stream: str = "desk-ann") -> StoredEvent:
    return StoredEvent(position, stream, position, bytes(16), "approval.requested", 1, b"", 0, None, None)


def asked(name: str) -> facts.ApprovalRequested:
    return facts.ApprovalRequested(name, 0, 0, "Pay?", "c", {}, b"d", 1)


def told() -> Questions:
    questions = Questions(1)
    for position, (stream, name) in enumerate([("desk-ann", "a1"), ("desk-bob", "b1"), ("desk-ann", "a2")], 2):
        questions.take(event(position, stream), asked(name))
    return questions


def names(questions: Questions) -> list[str]:
    return [each.asked.approval_id for each in questions.firsts()]


def test_each_key_has_its_own_line_and_the_checkpoint_stays_behind_the_oldest():
    questions = told()
    assert (["a1", "b1"], 3, 1) == (names(questions), len(questions), questions.low_water)
    questions.over("desk-bob", "b1")
    assert (["a1"], 1) == (names(questions), questions.low_water)
    questions.over("desk-ann", "a1")
    assert (["a2"], 3) == (names(questions), questions.low_water)
    questions.over("desk-ann", "a2")
    assert ([], 4, 0) == (names(questions), questions.low_water, len(questions))


def test_what_is_answered_or_given_up_needs_no_publishing_any_more():
    for change in CHANGES.values():
        questions = told()
        questions.take(event(9), change)
        questions.take(event(10), change)
        assert (["b1", "a2"], 2, 10) == (names(questions), questions.low_water, questions.cursor)


def test_nothing_is_taken_twice():
    questions = told()
    questions.take(event(5), asked("a1"))
    questions.over("desk-eve", "x")
    assert (["a1", "b1"], 3) == (names(questions), len(questions))
