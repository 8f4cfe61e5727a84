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

from tests.acceptance.forking import PROGRAM
from tests.replay.test_aggregates import WALLET
from tests.replay.test_code import eventlog

LOUD = (
    """
import os
def loud(place):
    print("loud:", place)
    os.write(1, b"loud by descriptor\\n")
loud("import")
"""
    + WALLET
)
for before, place in (("        return self.evolve(cents", "applier"), ("    wallet = await", "agent")):
    indent = before[: len(before) - len(before.lstrip())]
    LOUD = LOUD.replace(before, f'{indent}loud("{place}")\n{before}')
#: What stands in ``LOUD``, and what makes it stay there.
PRINTS = '    print("loud:", place)'
STAYS = """    if place == {where!r}:
        import sys, time
        print("here", file=sys.stderr, flush=True)
        time.sleep(60)"""
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
    ids=" ".join,
)
def test_what_users_code_prints_is_no_part_of_the_answer(recorded, words):
    code, out, err = eventlog(recorded, *words, *APP, "--json", apart=True)
    assert code in (0, 1), err
    assert [] == [line for line in out.splitlines() if not isinstance(json.loads(line), dict)]
    assert words[0] in ("fork", "preflight") or out
    assert ("loud: import" in err, "loud by descriptor" in err) == (True, True)
    plainly = eventlog(recorded, *words, *APP, apart=True)
    assert "loud" not in plainly[1]


def living(group: int) -> list[str]:
    """Processes of this group that have not ended."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in listed if line.split()[0] == str(group) and not line.split()[1].startswith("Z")]


@pytest.mark.parametrize("jobs", ["1", "3"])
@pytest.mark.parametrize("where", ["import", "agent"])
def test_an_interrupt_ends_the_command_by_one_line_and_its_children_with_it(recorded, tmp_path, jobs, where):
    for name in ("wallet.py", "eventlog.db"):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    (tmp_path / "wallet.py").write_text(LOUD.replace(PRINTS, STAYS.format(where=where)))
    words = [*PROGRAM, "replay", "--all", "--jobs", jobs, *APP]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as running:
        assert running.stderr is not None
        while "here" not in (line := running.stderr.readline()):
            assert line, "it ended"
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the children, too
        _, err = running.communicate(timeout=30)
    said = [line for line in err.splitlines() if line not in ("here", "loud by descriptor")]
    assert (130, 1, True) == (running.returncode, len(said), said[0].startswith("eventlog: interrupted")), err
    deadline = time.monotonic() + 10
    while living(running.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [] == living(running.pid)


EARLY = """
import os, signal, sys
sys.argv[0] = "/usr/bin/eventlog"

class Early:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Early())
from intentlog.eventlog.cli import main
main()
"""


@pytest.mark.parametrize("name", ["intentlog.eventlog.clock", "intentlog.eventlog.cli", "intentlog.replay.cli", "wallet"])
def test_an_interrupt_while_the_command_is_being_loaded_shows_no_traceback(recorded, name):
    done = subprocess.run([sys.executable, "-c", EARLY.format(name=name), "state", "tills-a", *APP], cwd=recorded, capture_output=True, text=True, check=False)
    assert (130, "") == (done.returncode, done.stdout), done.stderr
    assert done.stderr in ("", "eventlog: interrupted\n")


@pytest.mark.parametrize(
    "words", [("state", "wallets-w1"), ("why", "wallets-w1", "cents"), ("fork", "tills-a", "--dry-run"), ("replay", "--all"), ("show", "tills-a")]
)
def test_a_thread_that_users_code_leaves_running_does_not_keep_the_command(recorded, tmp_path, words):
    app = "import threading\nthreading.Thread(target=threading.Event().wait).start()\n" + WALLET
    (tmp_path / "waiting.py").write_text(app)
    quiet = eventlog(recorded, *words, "--app", "wallet:app", apart=True)
    log = f"sqlite:///{recorded}/eventlog.db"
    left = eventlog(tmp_path, *words, "--app", "waiting:app", "--log", log, apart=True)  # which ends it after two minutes
    assert (quiet[0], quiet[1]) == (left[0], left[1])
    assert "" == left[2]
