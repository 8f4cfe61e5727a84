"""The shell has no hands either: whatever front end it runs on, nothing of it brings the effector, a model client or a worker."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import intentlog.replay.cli_shell
import intentlog.replay.shell
for found in pkgutil.iter_modules(intentlog.replay.shell.__path__):
    importlib.import_module(f"intentlog.replay.shell.{found.name}")
unwanted = ("intentlog.effector", "intentlog.agents.clients", "intentlog.agents.worker", "intentlog.agents.turns", "httpx", "httpcore", "psycopg")
print(sorted(name for name in sys.modules if name.startswith(unwanted)))
"""


def test_the_shell_loads_neither_hands_nor_clients_nor_workers():
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert ("[]\n", "") == (done.stdout, done.stderr)


def test_the_plain_front_end_needs_neither_of_the_others():
    program = "import sys; sys.modules['ptpython'] = sys.modules['IPython'] = sys.modules['prompt_toolkit'] = None\nimport intentlog.replay.shell.front_plain"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
