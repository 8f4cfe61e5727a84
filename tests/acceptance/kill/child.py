"""`eventlog`, as a child that dies: the real command, taking in inputs two at a time so that the input boundaries are met more than once.

``KILL_HABIT`` makes it one of the wrong programs in ``habits``; ``KILL_COUNTS`` names a file for how often each boundary was met.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from intentlog.effector import inputs
from intentlog.effector.process import Process
from intentlog.effector.serving import Serving
from intentlog.eventlog.cli import main

HELPING = 2


def tell_counts(path: Path) -> None:
    """Write the counts down when the run has ended in an orderly way, with those of the effector that no boundary has."""
    exit_code: Callable[..., int] = Serving._exit_code
    make: Callable[..., Process] = Serving._process
    made: list[Process] = []

    def making(self: Serving, *arguments: Any) -> Process:
        made.append(make(self, *arguments))
        return made[-1]

    def telling(self: Serving, *arguments: Any, **named: Any) -> int:
        counts = made[0]._effector.counts
        path.write_text(json.dumps({**self._boundaries, "stale": counts.stale, "refused": counts.refused}), "utf-8")
        return exit_code(self, *arguments, **named)

    setattr(Serving, "_process", making)  # noqa: B010 - the checker forbids to assign a method
    setattr(Serving, "_exit_code", telling)  # noqa: B010


if __name__ == "__main__":
    setattr(inputs, "_HELPING", HELPING)  # noqa: B010 - it is final, but not for us
    if "KILL_HABIT" in os.environ:
        from tests.acceptance.kill.habits import HABITS

        HABITS[os.environ["KILL_HABIT"]]()
    if "KILL_COUNTS" in os.environ:
        tell_counts(Path(os.environ["KILL_COUNTS"]))
    main()
