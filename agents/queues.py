"""The queues in which streams wait, and what an effector's checkpoints are called: what workers and effectors agree on."""

from __future__ import annotations

from typing import Final

TURNS: Final = "turn"
"""The queue in which streams wait for a worker."""
RETRIES: Final = "retry"
"""Not waited in: holds the streams whose failed turn will be tried again, so that "is anything left to do?" is one question."""
EFFECTS: Final = "effect"
"""The queue whose leases decide which effector carries out a stream's intents."""
CHECKPOINT: Final = "effector"
"""How the checkpoints of effectors are named: this, or this and their categories behind colons."""
