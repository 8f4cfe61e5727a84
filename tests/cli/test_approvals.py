"""Approvals at the command line: to exactly what was shown, by name, once, in time; and those that come back signed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents.approvals import PublishedApproval
from intentlog.agents.approvals_answers import STREAM, sign_answer
from intentlog.agents.signing import KeyRing
from intentlog.eventlog.clock import system_clock
from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import call

SECRET = bytes(range(32))
DESK = """
from datetime import timedelta
from intentlog.agents import App, RetryPolicy, agent

@agent("desk", retry=RetryPolicy(max_attempts=1))
async def desk(ctx, hours: int):
    timeout = timedelta(hours=hours) or timedelta(milliseconds=1)
    verdict = await ctx.approval("Pay it?", channel="night" if hours > 9 else "day", timeout=timeout, hours=hours)
    return [verdict.approved, verdict.by, verdict.reason]

app = App(agents=[desk])
"""


@pytest.fixture
def desk(shop: Path) -> Path:
    (shop / "questions.py").write_text(DESK)
    (shop / "keys").write_text(f"may:{SECRET.hex()}\n")
    return shop


def ask(**hours: int) -> None:
    for key, number in hours.items():
        assert 0 == call("send", "desk", key, "-", json.dumps(number), "--id", f"{key}-{number}").exit_code
    serve()


def serve() -> None:
    done = call("worker", "questions:app", "--until-idle")
    assert 0 == done.exit_code, done.stderr


def listed(*words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in call("approvals", "list", "--json", *words).stdout.splitlines()]


def decisions() -> list[dict[str, Any]]:
    found = [json.loads(line) for line in call("tail", "--json", "--type", "approval.decided").stdout.splitlines()]
    return [each["fields"] for each in found]


def answer(*words: str, stream: str = "desk-ann", verb: str = "approve") -> Any:
    return call("approvals", verb, stream, "approval-0-0", *words)


def test_a_script_says_what_it_approves(desk):
    ask(ann=1, bob=2)
    (ann, bob) = listed()
    done = answer("--by", "ada")
    assert (2, True) == (done.exit_code, "eventlog approvals show desk-ann approval-0-0" in done.stderr)
    for wrong in ("12", "xyz", "0" * 65):
        assert (2, True) == ((done := answer("--digest", wrong)).exit_code, "first 8 digits" in done.stderr)
    for other in ("0" * 64, bob["digest"], bob["digest"][:8]):
        done = answer("--digest", other)
        assert (3, True) == (done.exit_code, ann["digest"] in done.stderr)
    assert [] == decisions()
    assert f"--digest {ann['digest'][:16]}" in call("approvals", "show", "desk-ann").stdout
    assert 0 == answer("--digest", ann["digest"][:8], "--by", "ada", "--reason", "known").exit_code
    assert [(True, "ada", "known")] == [(each["approved"], each["by"], each["reason"]) for each in decisions()]
    serve()
    assert ["desk-bob"] == [each["stream"] for each in listed()]


@pytest.mark.parametrize("digits", [9, 63, 64])
def test_more_digits_of_the_digest_do_as_well_and_case_does_not_matter(desk, digits):
    ask(ann=1)
    assert 0 == answer("--digest", listed()[0]["digest"][:digits].upper()).exit_code


def test_the_same_answer_again_changes_nothing_and_another_is_refused_by_name(desk):
    ask(ann=1)
    digest = listed()[0]["digest"]
    assert not json.loads(answer("--digest", digest, "--by", "ada", "--json").stdout)["duplicate"]
    assert "done before: nothing was written" in answer("--digest", digest, "--by", "ada").stdout
    for done in (answer("--digest", digest, "--by", "bob"), answer("--by", "ada", verb="deny")):
        assert (3, True) == (done.exit_code, "was approved by ada already; the first answer is final" in done.stderr)
    assert 1 == len(decisions())


def test_a_denial_needs_no_digest_and_heeds_one(desk):
    ask(ann=1)
    assert 3 == answer("--digest", "0" * 8, verb="deny").exit_code
    assert 0 == answer("--reason", "too much", verb="deny").exit_code
    (found,) = decisions()
    assert (False, "too much", True) == (found["approved"], found["reason"], bool(found["by"]))


def test_after_its_deadline_a_question_stays_a_denial(desk):
    ask(ann=0)
    for then in (lambda: None, serve):
        then()
        for digest in ("0" * 64, call("approvals", "show", "desk-ann", "approval-0-0").stdout.partition("digest")[2].split()[0]):
            done = answer("--digest", digest)
            assert (3, [], True) == (done.exit_code, decisions(), "expired at" in done.stderr), done.stderr
        assert (3, True) == ((done := call("approvals", "show", "desk-ann")).exit_code, "approval-0-0 (expired at" in done.stderr)
        assert "answer    none; it expired at" in call("approvals", "show", "desk-ann", "approval-0-0").stdout


def test_the_list_is_filtered_by_channel_agent_key_age_and_deadline(desk):
    ask(ann=1, bob=2, eve=12)
    cases = {
        ("--channel", "night"): ["desk-eve"],
        ("--agent", "desk"): ["desk-ann", "desk-bob", "desk-eve"],
        ("--agent", "shop"): [],
        ("--key", "bob"): ["desk-bob"],
        ("--older-than", "1h"): [],
        ("--older-than", "0s"): ["desk-ann", "desk-bob", "desk-eve"],
        ("--expires-within", "90m"): ["desk-ann"],
        ("--expires-within", "3h", "--channel", "day"): ["desk-ann", "desk-bob"],
    }
    assert cases == {words: sorted(each["stream"] for each in listed(*words)) for words in cases}
    assert "No such question" in call("approvals", "list", "--key", "nobody").stdout
    assert 2 == call("approvals", "list", "--older-than", "soon").exit_code


def test_what_is_over_is_shown_with_who_said_what_when_and_why(desk):
    ask(ann=1)
    (asked,) = listed()
    answer("--digest", asked["digest"], "--by", "ada", "--reason", "known")
    serve()
    shown = call("approvals", "show", "desk-ann", "approval-0-0")
    assert (0, True, True) == (shown.exit_code, asked["digest"] in shown.stdout, "UTC by ada: known" in shown.stdout)
    told = json.loads(call("approvals", "show", "desk-ann", "approval-0-0", "--json").stdout)
    assert ((True, "ada", "known"), "Pay it?") == (tuple(told["decided"][each] for each in ("approved", "by", "reason")), told["question"])
    for words in (("desk-ann",), ("desk-ann", "approval-7-7")):
        shown = call("approvals", "show", *words)
        assert (3, True) == (shown.exit_code, "No longer open: approval-0-0 (approved by ada). See one: eventlog approvals show desk-ann" in shown.stderr)
    ask(bob=0)
    assert "answer    none" in call("approvals", "show", "desk-bob", "approval-0-0").stdout


def at_a_terminal(folder: Path, said: bytes, *words: str) -> tuple[int, str]:
    """Exit code and screen of a command whose terminal says ``said``."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([*PROGRAM, *words], cwd=folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.close(theirs)
    os.write(ours, said)
    screen, _ = child.communicate(timeout=60)
    os.close(ours)
    return child.returncode, screen.decode()


@pytest.mark.parametrize(("said", "code", "approved"), [(b"y\n", 0, [True]), (b"n\n", 3, []), (b"\n", 3, [])])
def test_at_a_terminal_the_question_is_shown_and_asked_back(desk, said, code, approved):
    ask(ann=1)
    seen, screen = at_a_terminal(desk, said, "approvals", "approve", "desk-ann", "approval-0-0", "--by", "ada")
    assert (code, approved) == (seen, [each["approved"] for each in decisions()]), screen
    assert ("Pay it?" in screen, listed()[0]["digest"] in screen if not approved else True, "Approve this?" in screen) == (True, True, True)


# ── signed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def signed(folder: Path, *, secret: bytes = SECRET, **named: Any) -> str:
    """A file with a signed yes to the only question there is."""
    (found,) = listed()
    asked = PublishedApproval("", found["stream"], found["id"], "", "", {}, bytes.fromhex(found["digest"]), 0)
    raw = sign_answer(KeyRing({"may": secret}), asked, approved=True, by="grace", reason="in the chat", now=named.get("now", system_clock()))
    (folder / "answer.json").write_bytes(raw)
    return "answer.json"


def test_a_signed_answer_is_recorded_from_a_file_or_stdin(desk):
    ask(ann=1)
    file = signed(desk)
    assert "desk-ann  approval-0-0 is approved by grace" in call("approvals", "answer", "--signed", file, "--signing-keys", f"file:{desk}/keys").stdout
    again = call("approvals", "answer", "--signed", "-", "--signing-keys", f"file:{desk}/keys", "--json", stdin=(desk / file).read_bytes())
    assert (0, True) == (again.exit_code, json.loads(again.stdout)["duplicate"])
    assert [("grace", "in the chat")] == [(each["by"], each["reason"]) for each in decisions()]


def test_what_is_not_authentic_is_kept_shown_with_its_bytes_and_looked_at_again_with_other_keys(desk, monkeypatch):
    ask(ann=1)
    (desk / "others").write_text(f"may:{bytes(32).hex()}\n")
    monkeypatch.setenv("EVENTLOG_SIGNING_KEYS", f"file:{desk}/others")
    done = call("approvals", "answer", "--signed", signed(desk))
    assert (3, True, []) == (done.exit_code, "not authentic" in done.stderr, decisions())
    (found,) = [json.loads(line) for line in call("dead-letters", "list", "--status", "distrusted", "--json").stdout.splitlines()]
    assert (STREAM, 0, "desk-ann") == (found["stream"], found["seq"], found["claims"]["stream"])
    shown = call("dead-letters", "show", STREAM)
    assert (0, True, True) == (shown.exit_code, '"by":"grace"' in shown.stdout.replace("\\", ""), found["sha256"] in shown.stdout)
    assert [] == [line for line in call("dead-letters", "list", "--status", "parked").stdout.splitlines() if STREAM in line]
    assert 2 == call("dead-letters", "redrive", STREAM).exit_code
    assert 3 == call("dead-letters", "redrive", STREAM, "--seq", "0").exit_code
    assert 3 == call("dead-letters", "redrive", STREAM, "--seq", "7", "--signing-keys", f"file:{desk}/keys").exit_code
    done = call("dead-letters", "redrive", STREAM, "--seq", "0", "--signing-keys", f"file:{desk}/keys", "--by", "bob", "--reason", "the other ring")
    assert (0, True) == (done.exit_code, "is approved by grace" in done.stdout)
    assert ("No dead letters.\n", 1) == (call("dead-letters", "list").stdout, len(decisions()))
    told = call("streams").stdout + call("show", STREAM).stdout
    assert (True, True) == ("AnswerRedriven" in told, SECRET.hex() not in told)
    assert 0 == call("replay", "--all", "--app", "questions:app").exit_code
    assert 0 == call("verify", "--app", "questions:app", "--signing-keys", f"file:{desk}/keys").exit_code
    assert 1 == call("verify", "--app", "questions:app").exit_code  # with the ring that it was not


SECRETIVE = {
    "the key ring": (f"may:{SECRET.hex()}\n".encode(), "no JSON"),
    "nothing": (b"\n", "is empty"),
    "JSON that was cut": (b'{"stream": "desk-ann", "appro', "no JSON"),
    "bytes": (b"\xff\x00" + SECRET, "no JSON"),
    "a string": (json.dumps(SECRET.hex()).encode(), "JSON, but no object"),
    "credentials": (json.dumps({SECRET.hex(): SECRET.hex()}).encode(), "an object without stream, approval, digest"),
    "nested too deep": (b"[" * 60_000, "no JSON"),
    "far too long": (b"[" * 70_000, "longer than 65,536 bytes"),
}


@pytest.mark.parametrize("stdin", [False, True])
@pytest.mark.parametrize("case", SECRETIVE)
def test_what_is_no_signed_answer_is_refused_and_neither_kept_nor_repeated(desk, case, stdin):
    raw, said = SECRETIVE[case]
    (desk / "wrong").write_bytes(raw)
    words = ("approvals", "answer", "--signed", "-" if stdin else "wrong", "--signing-keys", f"file:{desk}/keys")
    done = call(*words, stdin=raw if stdin else None)
    assert (3, True) == (done.exit_code, said in done.stderr), done.stderr
    assert SECRET.hex() not in done.stdout + done.stderr
    assert "No dead letters.\n" == call("dead-letters", "list").stdout


@pytest.mark.parametrize("change", [{"more": SECRET.hex()}, {"approved": SECRET.hex()}])
def test_an_answer_with_another_form_is_refused_at_the_door_and_one_with_other_contents_is_kept(desk, change):
    ask(ann=1)
    file = desk / signed(desk)
    given = json.loads(file.read_bytes())
    words = ("approvals", "answer", "--signed", "answer.json", "--signing-keys", f"file:{desk}/keys")
    file.write_text(json.dumps(given | change))
    done = call(*words)
    assert (3, False, "No dead letters.\n") == (done.exit_code, SECRET.hex() in done.stderr, call("dead-letters", "list").stdout)
    file.write_text(json.dumps(given | {"by": "eve"}))
    assert (3, True) == ((done := call(*words)).exit_code, "It is kept" in done.stderr)
    assert 1 == len(call("dead-letters", "list", "--status", "distrusted", "--json").stdout.splitlines())


def test_an_answer_may_be_as_old_as_it_is_said(desk):
    ask(ann=1)
    words = ("approvals", "answer", "--signed", signed(desk, now=system_clock() - 3_000_000_000), "--signing-keys", f"file:{desk}/keys")
    assert (3, True) == ((done := call(*words)).exit_code, "3000 s ago" in done.stderr)
    assert 0 == call(*words, "--fresh-for", "2h").exit_code


@pytest.mark.parametrize(("words", "said"), [((), "verified with keys"), (("--signing-keys", "env:GONE"), "no environment variable GONE")])
def test_without_keys_no_signed_answer_is_taken(desk, words, said):
    (desk / "answer.json").write_text("{}")
    done = call("approvals", "answer", "--signed", "answer.json", *words)
    assert (2, True) == (done.exit_code, said in done.stderr)


def test_a_file_that_is_not_there_is_a_mistake_in_the_command(desk):
    done = call("approvals", "answer", "--signed", "gone.json", "--signing-keys", f"file:{desk}/keys")
    assert (2, True) == (done.exit_code, "cannot be read" in done.stderr)


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_a_worker_that_insists_heeds_only_answers_that_are_signed_until_somebody_vouches(desk, verb):
    ask(ann=1, bob=2)
    keys = ("--signing-keys", f"file:{desk}/keys")
    digests = {each["stream"]: each["digest"] for each in listed()}
    assert 0 == answer("--digest", digests["desk-ann"], *keys, verb=verb).exit_code
    assert 0 == answer("--digest", digests["desk-bob"], verb=verb, stream="desk-bob").exit_code
    insists = ("worker", "questions:app", "--until-idle", "--verify-outcomes", "require", *keys)
    assert 0 == call(*insists).exit_code
    (found,) = [json.loads(line) for line in call("dead-letters", "list", "--json").stdout.splitlines()]
    assert ("desk-bob", "blocked") == (found["stream"], found["kind"])
    words = ("dead-letters", "redrive", "desk-bob", "--approval", "approval-0-0", *keys)
    assert 2 == call(*words).exit_code
    done = call(*words, "--reason", "he told me", "--json")
    assert {"stream": "desk-bob", "approval": "approval-0-0", "key_id": "may", "duplicate": False} == json.loads(done.stdout)
    assert 0 == call(*insists).exit_code
    assert ["completed"] * 2 == [json.loads(line)["state"] for line in call("streams", "--json").stdout.splitlines()]
    assert "ApprovalSigned" in call("show", "desk-ann").stdout
