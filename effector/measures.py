"""How much an effector does at once, and what it has done."""

from __future__ import annotations

import attrs

from ..eventlog.clock import SECOND


@attrs.frozen
class EffectorSettings:
    """How much an effector does at once."""

    #: Keys in flight.
    concurrency: int = attrs.field(default=32, validator=attrs.validators.ge(1))
    #: Lease length in µs; renewed at a third of it while a tool runs (S-6.7).
    lease: int = attrs.field(default=30 * SECOND, validator=attrs.validators.ge(SECOND // 10))
    #: Seconds between looks at the tail when nothing wakes the effector.
    poll: float = attrs.field(default=0.05, validator=attrs.validators.gt(0))
    #: Seconds a tool that is running may still take when the effector stops.
    grace: float = attrs.field(default=10.0, validator=attrs.validators.ge(0))
    #: Leave intents whose tool is not known here to an effector that knows it, until they expire, instead of REJECTED.
    hold_unknown: bool = False


@attrs.define
class Counts:
    """What this effector did since it started."""

    attempts: int = 0
    #: Attempts that failed and are made again.
    postponed: int = 0
    #: Intents that were not authentic: nothing was done about them.
    distrusted: int = 0
    settled: int = 0
    by_status: dict[str, int] = attrs.field(factory=dict)
    #: Settlements that came second and were refused (S-6.2).
    refused: int = 0
    #: Appends refused because the lease had gone to somebody else (S-6.4).
    stale: int = 0
    busy: int = 0
