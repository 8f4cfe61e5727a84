"""Key rings and signatures: what is taken, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from intentlog.agents import facts
from intentlog.agents.signing import KeyRing, KeysRefused, Signature, verifier

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
TEXT = f"new:{NEW.hex()}\n# retired in May\nold:{OLD.hex()}\n"
INTENT = ("orders-a", 1, b"payload")
READMITTED = ("orders-a", 1, "ada", "fine", 0, 1, b"payload")
ANSWER = ("orders-a", "approval-0-0", b"digest", True, "ada", "fine", 7)


@pytest.fixture
def ring() -> KeyRing:
    return KeyRing.parse(TEXT)


def test_the_first_key_signs_and_all_verify(ring):
    made = ring.sign_intent(*INTENT)
    assert ("new", ("new", "old")) == (made.key_id, ring.ids)
    assert ring.verify_intent(made, *INTENT) is None
    assert ring.verify_intent(KeyRing({"old": OLD}).sign_intent(*INTENT), *INTENT) is None


def test_a_ring_is_rotated_with_nothing_refused_on_the_way():
    before, added, switched, retired = (
        KeyRing({"old": OLD}),
        KeyRing({"old": OLD, "new": NEW}),
        KeyRing({"new": NEW, "old": OLD}),
        KeyRing({"new": NEW}),
    )
    for signs, verifies in ((before, added), (added, added), (added, switched), (switched, added), (switched, switched), (switched, retired)):
        assert verifies.verify_intent(signs.sign_intent(*INTENT), *INTENT) is None
    assert "not in the ring (new)" in (retired.verify_intent(before.sign_intent(*INTENT), *INTENT) or "")


@pytest.mark.parametrize("other", [("orders-b", 1, b"payload"), ("orders-a", 2, b"payload"), ("orders-a", 1, b"payloae"), ("orders-a1", 1, b"payload")])
def test_a_signature_is_for_one_stream_and_one_payload_alone(ring, other):
    assert "not one of these bytes on this stream" in (ring.verify_intent(ring.sign_intent(*INTENT), *other) or "")


def test_nothing_but_a_signature_by_a_key_of_the_ring_is_authentic(ring):
    made = ring.sign_intent(*INTENT)
    for forged in (Signature("new", b""), Signature("old", made.signature), Signature("new", made.signature[:-1]), Signature("gone", made.signature)):
        assert ring.verify_intent(forged, *INTENT)


def test_a_ring_is_read_from_a_file_or_the_environment(tmp_path, ring):
    (tmp_path / "keys").write_text(TEXT)
    one_line = {"PAY_KEYS": TEXT.splitlines()[0] + " " + TEXT.splitlines()[2]}
    for read in (KeyRing.read(f"file:{tmp_path / 'keys'}"), KeyRing.read("env:PAY_KEYS", one_line)):
        assert ring.ids == read.ids
        assert read.verify_intent(ring.sign_intent(*INTENT), *INTENT) is None


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("hunter2", "never given themselves"),
        ("env:", "never given themselves"),
        (f"new:{NEW.hex()}", "never given themselves"),
        ("env:GONE", "no environment variable GONE"),
        ("file:/nowhere/keys", "cannot be read: No such file"),
        ("env:EMPTY", "holds no key"),
        ("env:SHORT", "has 4 bytes and must have 32"),
        ("env:WORDS", "key 2: an entry is ID:HEX"),
        ("env:BARE", "key 1: an entry is ID:HEX"),
        ("env:TWICE", "key 2: its id is used twice"),
        ("env:ODD", "key 1: its id must be"),
    ],
)
def test_a_ring_that_cannot_be_used_says_why_and_never_shows_a_secret(reference, said):
    hexed = NEW.hex()
    environment = {
        "EMPTY": "# nothing\n",
        "SHORT": "a:00112233",
        "WORDS": f"a:{hexed} b:hunter2",
        "BARE": hexed,
        "TWICE": f"a:{hexed}\na:{hexed}",
        "ODD": f"hunter2!:{hexed}",
    }
    with pytest.raises(KeysRefused) as refused:
        KeyRing.read(reference, environment)
    told = str(refused.value) + repr(refused.value.__cause__)
    assert said in told
    assert not any(secret in told for secret in (hexed, "hunter2", "00112233"))


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "keys").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KeysRefused, match="it is no text"):
        KeyRing.read(f"file:{tmp_path / 'keys'}")


def test_whoever_prints_a_ring_sees_ids_alone_and_nobody_pickles_it(ring):
    assert "KeyRing(new, old)" == repr(ring) == str(ring)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(ring)


def test_a_verifier_refuses_wrong_signatures_and_missing_ones_when_they_are_required(ring):
    made, wrong = ring.sign_intent(*INTENT), Signature("new", b"")
    for mode, missing in (("permissive", None), ("require", "it is not signed")):
        verifies = verifier(mode, ring)
        assert verifies is not None
        assert (None, missing) == (verifies.objection(made, *INTENT), verifies.objection(None, *INTENT))
        assert verifies.objection(wrong, *INTENT)
    assert verifier("off", None) is None
    with pytest.raises(KeysRefused, match="give --signing-keys"):
        verifier("require", None)


SIGNED = {
    "intent": (lambda ring: ring.sign_intent(*INTENT), lambda ring, made: ring.verify_intent(made, *INTENT)),
    "outcome": (lambda ring: ring.sign_outcome(*INTENT), lambda ring, made: ring.verify_outcome(made, *INTENT)),
    "decision": (lambda ring: ring.sign_decision(*INTENT), lambda ring, made: ring.verify_decision(made, *INTENT)),
    "readmission": (lambda ring: ring.sign_readmission(*READMITTED), lambda ring, made: ring.verify_readmission(made, *READMITTED)),
    "webhook": (lambda ring: ring.sign_webhook(7, b"payload"), lambda ring, made: ring.verify_webhook(made, 7, b"payload")),
    "answer": (lambda ring: ring.sign_answer(*ANSWER), lambda ring, made: ring.verify_answer(made, *ANSWER)),
}


@pytest.mark.parametrize("purpose", SIGNED)
def test_a_signature_for_one_purpose_is_of_no_use_for_another(ring, purpose):
    made = SIGNED[purpose][0](ring)
    authentic = {other: verify(ring, made) is None for other, (_, verify) in SIGNED.items()}
    assert {other: other == purpose for other in SIGNED} == authentic


@pytest.mark.parametrize("place", range(len(ANSWER)))
def test_every_part_of_an_answer_is_signed(ring, place):
    made = ring.sign_answer(*ANSWER)
    other = [*ANSWER]
    other[place] = {"str": "x", "bytes": b"x", "bool": False, "int": 8}[type(ANSWER[place]).__name__]
    assert "not one of this answer" in (ring.verify_answer(made, *other) or "")


@pytest.mark.parametrize("place", range(len(READMITTED)))
def test_every_part_of_a_readmission_is_signed(ring, place):
    made = ring.sign_readmission(*READMITTED)
    other = [*READMITTED]
    other[place] = {"str": "x", "bytes": b"x", "int": 8}[type(READMITTED[place]).__name__]
    assert "not one of these bytes" in (ring.verify_readmission(made, *other) or "")


def test_parts_are_not_run_together(ring):
    made = ring.sign_answer("orders-a", "approval-0-0", b"d", True, "ada", "bob", 7)
    assert ring.verify_answer(made, "orders-a", "approval-0-0", b"d", True, "adab", "ob", 7)


def test_keys_without_verifying_are_there_to_sign_outcomes_with(ring):
    signs = verifier("off", ring)
    assert signs is not None
    wrong = Signature("new", b"")
    assert (None, None, ring) == (signs.objection(wrong, *INTENT), signs.objection(None, *INTENT), signs.keys)
    forged = facts.IntentReadmitted("x", 1, "eve", "", 0, 1, b"payload", "new", b"")
    assert signs.objection_to_readmission(forged, "orders-a") is None
    for mode in ("permissive", "require"):
        insists = verifier(mode, ring)
        assert insists is not None
        assert insists.objection_to_readmission(forged, "orders-a")


def test_a_relative_file_is_one_from_the_current_folder(tmp_path: Path, monkeypatch, ring):
    (tmp_path / "ring one").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    assert ring.ids == KeyRing.read("file:ring one").ids


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for where in ("/dev/zero", "/dev/null", str(tmp_path), str(tmp_path / "pipe")):
        with pytest.raises(KeysRefused, match="is no regular file"):
            KeyRing.read(f"file:{where}")


def test_a_file_that_is_too_long_for_a_ring_is_refused_unread(tmp_path: Path):
    (tmp_path / "keys").write_text(TEXT + "#" * (65_536 - len(TEXT)))
    assert ("new", "old") == KeyRing.read(f"file:{tmp_path / 'keys'}").ids
    os.truncate(tmp_path / "keys", 1 << 40)
    with pytest.raises(KeysRefused, match="has 1,099,511,627,776 bytes, and a key ring at most 65,536"):
        KeyRing.read(f"file:{tmp_path / 'keys'}")
