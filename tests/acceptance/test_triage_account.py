"""The count of repeated provider calls would notice every way in which it could be wrong."""

from __future__ import annotations

from tests.acceptance.harness_triage import Life, account_for

NONE: frozenset[str] = frozenset()
A = frozenset({"a"})


def life(caller: str, before: frozenset[str], after: frozenset[str], *, killed: bool) -> Life:
    return Life(caller, killed, before, after, NONE, NONE)


def chat(caller: str, key: str) -> dict[str, str]:
    return {"caller": caller, "key": key, "kind": "chat"}


def test_an_answer_lost_by_a_kill_explains_one_repetition():
    account = account_for([life("1", NONE, NONE, killed=True), life("2", NONE, A, killed=False)], [chat("1", "a"), chat("2", "a")], [])
    assert ([], 1, {"1": ["a"]}) == (account.faults, account.repeated_chats, account.lost_answers)


def test_asking_for_a_journalled_answer_is_a_fault():
    account = account_for([life("1", NONE, A, killed=True), life("2", A, A, killed=False)], [chat("1", "a"), chat("2", "a")], [])
    assert ["2 asked for model answer a, which was durable before it began", "model answer a was asked for 2 times, and lost by 0 kills"] == account.faults


def test_asking_twice_in_one_life_is_a_fault():
    account = account_for([life("1", NONE, A, killed=False)], [chat("1", "a"), chat("1", "a")], [])
    assert ["1 asked for model answer a 2 times", "model answer a was asked for 2 times, and lost by 0 kills"] == account.faults


def test_an_answer_that_an_unkilled_life_leaves_behind_is_a_fault():
    account = account_for([life("1", NONE, NONE, killed=False)], [chat("1", "a")], [])
    assert ["1 was not killed and left model answer a behind", "model answer a was asked for 1 times, and lost by 1 kills"] == account.faults


def test_a_lost_answer_that_is_never_asked_for_again_is_a_fault():
    account = account_for([life("1", NONE, NONE, killed=True), life("2", NONE, NONE, killed=False)], [chat("1", "a")], [])
    assert ["model answer a was asked for 1 times, and lost by 1 kills"] == account.faults


def test_a_request_of_nobody_is_a_fault():
    account = account_for([life("1", NONE, NONE, killed=False)], [chat("", "a")], [])
    assert ["requests of [''], which is no life of this log"] == account.faults
