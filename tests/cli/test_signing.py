"""Signing keys at the command line: from the worker that signs to the effector that insists on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import call

HEX, OTHER = bytes(range(32)).hex(), bytes(32).hex()


@pytest.fixture
def keys(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (shop / "keys").write_text(f"may:{HEX}\n")
    (shop / "others").write_text(f"june:{OTHER}\n")
    assert 0 == call("send", "orders", "ann", "order.placed", '{"order_id": "o-1"}', "--id", "o-1").exit_code
    return shop


def kinds() -> list[str]:
    return [json.loads(line)["type"] for line in call("tail", "--json").stdout.splitlines()]


def test_what_a_worker_signs_an_effector_that_insists_carries_out(keys):
    assert 0 == call("worker", "shop:app", "--until-idle", "--signing-keys", f"file:{keys / 'keys'}").exit_code
    assert 1 == kinds().count("intent.signed")
    assert 0 == call("run", "shop:app", "--until-idle", "--signing-keys", f"file:{keys / 'keys'}", "--verify-intents", "require").exit_code
    assert "activation.completed" in kinds()


def test_what_is_signed_with_a_strange_key_is_set_aside_and_shown_until_somebody_takes_it_back(keys, monkeypatch):
    monkeypatch.setenv("EVENTLOG_SIGNING_KEYS", f"file:{keys / 'others'}")
    assert 0 == call("worker", "shop:app", "--until-idle").exit_code
    monkeypatch.setenv("EVENTLOG_SIGNING_KEYS", f"file:{keys / 'keys'}")
    monkeypatch.setenv("EVENTLOG_VERIFY_INTENTS", "require")
    assert 0 == call("run", "shop:app", "--until-idle").exit_code
    assert not (keys / "ledger.txt").exists()
    (found,) = [json.loads(line) for line in call("intents", "list", "--status", "DISTRUSTED", "--json").stdout.splitlines()]
    assert ("june", True) == (found["key_id"], "which is not in the ring (may)" in found["why"])
    assert "which is not in the ring" in call("intents", "list").stdout
    shown = call("intents", "show", found["id"]).stdout
    assert ("bytes" in shown, f"eventlog intents cancel {found['id']}" in shown) == (True, True)
    assert 0 == call("intents", "cancel", found["id"]).exit_code
    assert "intent.settled" in kinds()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--signing-keys", HEX], "never given themselves"),
        (["--signing-keys", "file:/nowhere"], "cannot be read"),
        (["--signing-keys", "env:NO_SUCH_KEYS"], "no environment variable NO_SUCH_KEYS"),
        (["--verify-intents", "require"], "needs keys to verify with"),
        (["--verify-intents", "maybe"], "maybe"),
    ],
)
def test_keys_that_cannot_be_used_are_a_mistake_in_the_command_and_are_not_shown(keys, words, said):
    told = call("run", "shop:app", "--until-idle", *words)
    assert (2, True, False) == (told.exit_code, said in told.stderr.replace("\n", " "), HEX in told.stderr + told.stdout)
