"""Key rings and signatures: what is taken, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from intentlog.agents.signing import KeyRing, KeysRefused, Signature, verifier

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
TEXT = f"new:{NEW.hex()}\n# retired in May\nold:{OLD.hex()}\n"
INTENT = ("orders-a", 1, b"payload")


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
