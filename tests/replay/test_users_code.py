"""What users' code prints under a command that reads goes to stderr, and no command is ended by it unsaid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.replay.test_aggregates import WALLET
from tests.replay.test_code import PROGRAM, eventlog

LOUD = """
import os
def loud(place):
    print("loud:", place)
    os.write(1, b"loud by descriptor\\n")
loud("import")
""" + WALLET.replace('        return self.evolve(cents', '        loud("applier")\n        return self.evolve(cents').replace("    wallet = await", '    loud("agent")\n    wallet = await')
APP = ("--app", "wallet:app")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loud")
    (folder / "wallet.py").write_text(LOUD)
    for command in (("init",), ("send", "tills", "a", "300"), ("send", "tills", "b", "100"), ("run", "wallet:app", "--until-idle")):
        assert 0 == eventlog(folder, *command, apart=True)[0], command
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("replay", "--all"),
        ("replay", "--all", "--against", "."),
        ("preflight",),
        ("state", "wallets-w1"),
        ("why", "wallets-w1", "cents"),
        ("diff", "wallets-w1", "0", "now"),
        ("bisect", "wallets-w1", "st.cents > 300"),
        ("verify",),
        ("show", "wallets-w1"),
        ("trace", "tills-a@0"),
        ("search", "300"),
        ("fork", "tills-a", "--at", "1", "--dry-run"),
    ],
    ids=lambda words: " ".join(words),
)
def test_what_users_code_prints_is_no_part_of_the_answer(recorded, words):
    code, out, err = eventlog(recorded, *words, *APP, "--json", apart=True)
    assert code in (0, 1), err
    assert [] == [line for line in out.splitlines() if not isinstance(json.loads(line), dict)]
    assert words[0] in ("fork", "preflight") or out
    assert ("loud: import" in err, "loud by descriptor" in err) == (True, True)
    plainly = eventlog(recorded, *words, *APP, apart=True)
    assert "loud" not in plainly[1]
