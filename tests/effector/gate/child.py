"""One life of an effector: ``eventlog effector``, which may have a habit; for a process that is forked from one which has read all modules."""

from __future__ import annotations

import os
import sys

from intentlog.eventlog.cli import main

if __name__ == "__main__":
    if "GATE_HABIT" in os.environ:
        from tests.acceptance.kill.habits import HABITS

        HABITS[os.environ["GATE_HABIT"]]()
    sys.argv[0] = "eventlog"
    main()
