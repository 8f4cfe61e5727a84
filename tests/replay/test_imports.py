"""Memory has no hands: nothing in the room brings the effector, a model client or a way to the network with it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
import intentlog.replay
for found in pkgutil.iter_modules(intentlog.replay.__path__):
    importlib.import_module(f"intentlog.replay.{found.name}")
unwanted = ("intentlog.effector", "intentlog.agents.clients", "intentlog.agents.worker", "intentlog.agents.turns", "httpx", "httpcore")
print(sorted(name for name in sys.modules if name.startswith(unwanted)))
"""


def test_the_room_loads_neither_hands_nor_clients_nor_workers():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout
