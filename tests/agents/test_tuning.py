"""The interpreter of a process that serves."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import gc, sys
from intentlog.agents.tuning import tune_for_serving
before = gc.get_threshold()[0], sys.getswitchinterval()
tune_for_serving()
print(gc.isenabled(), gc.get_freeze_count() > 0, gc.get_threshold()[0] > before[0], sys.getswitchinterval() < before[1])
"""


def test_a_process_that_serves_collects_what_it_makes_and_not_what_was_there() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True"] * 4
