"""Dying on purpose: SIGKILL at a named boundary, for the demo, for kill tests and for whoever doubts.

``EVENTLOG_CRASH_AT=tool.called`` kills the process the first time a tool has been called and its outcome is not yet
recorded; ``EVENTLOG_CRASH_AT=turn.appended:7`` the seventh time a turn has been appended. SIGKILL runs no handler, flushes
nothing and hands nothing back: what is in the log by then is all there is.

The boundaries, in the order in which one input meets them:

==================  ==================================================================================================
``input.offered``     inputs were read and are not yet durable
``input.recorded``    they are durable
``model.answered``    the provider answered, the journal does not have it: the one window in which a call may be repeated
``model.journalled``  the answer is durable, the agent has not seen it
``turn.decided``      a turn has staged everything, in memory only
``turn.appended``     the turn is durable
``attempt.recorded``  an attempt is durable, the tool has not been called
``tool.called``       the tool has been called, its outcome is not recorded
``settled``           the outcome is durable
``checkpointed``      the effector has saved how far it has come
==================  ==================================================================================================

and the two that a schedule meets:

==================  ==================================================================================================
``schedule.due``      its moment has come, nothing has been delivered
``schedule.fired``    what it delivers and its next moment are durable
==================  ==================================================================================================

and the one of an effect that is tried again:

==================  ==================================================================================================
``postponed``         an attempt failed in a way that may heal; that, and when the next one is due, is durable
==================  ==================================================================================================

and those of an effector's first phases:

==================  ==================================================================================================
``claimed``           the effector holds the key of an intent and has recorded nothing about it
``distrusted``        that an intent is not authentic is durable
==================  ==================================================================================================

and those that only an intent from a bus meets, beside ``claimed``, ``attempt.recorded``, ``tool.called`` and ``postponed``:

==================  ==================================================================================================
``completed``         the outcome is in the dedup store, and not published
``published``         the outcome is published, its message is not acknowledged
``acknowledged``      the bus was told that messages are done with
``dead_lettered``     a message is a dead letter, and not acknowledged
==================  ==================================================================================================

and those that a question to people meets on its way to a surface:

==========================  ==========================================================================================
``approval.published``      the surface has it, no checkpoint says so
``approvals.checkpointed``  how far it has come is durable
==========================  ==========================================================================================
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Final, TypeAlias

Boundary: TypeAlias = Callable[[str, str], None]

BOUNDARIES: Final = (
    "input.offered",
    "input.recorded",
    "model.answered",
    "model.journalled",
    "turn.decided",
    "turn.appended",
    "attempt.recorded",
    "tool.called",
    "settled",
    "checkpointed",
)
"""Those that an input meets."""
SCHEDULED: Final = ("schedule.due", "schedule.fired")
"""Those that a schedule meets."""
RETRIED: Final = ("postponed",)
"""That of an effect that is tried again."""
CLAIMED: Final = ("claimed", "distrusted")
"""Those between a claim and an attempt."""
ON_BUS: Final = ("completed", "published", "acknowledged", "dead_lettered")
"""Those that only an intent from a bus meets."""
PUBLISHING: Final = ("approval.published", "approvals.checkpointed")
"""Those that a question to people meets on its way to a surface."""
ALL: Final = (*BOUNDARIES, *SCHEDULED, *RETRIED, *CLAIMED, *ON_BUS, *PUBLISHING)


def crash_at(spec: str, *, die: Callable[[], None] | None = None) -> Boundary:
    """A boundary function that ends this process with SIGKILL (or calls ``die``) where ``spec`` says.

    ``spec`` is ``boundary`` or ``boundary:n`` with n from 1. Raises ``ValueError`` naming the known boundaries.

    >>> crash_at("tea.time")
    Traceback (most recent call last):
    ValueError: 'tea.time' names no boundary; there are: input.offered, input.recorded, model.answered, model.journalled, \
turn.decided, turn.appended, attempt.recorded, tool.called, settled, checkpointed, schedule.due, schedule.fired, postponed, claimed, distrusted, \
completed, published, acknowledged, dead_lettered, approval.published, approvals.checkpointed
    """
    wanted, colon, count = spec.partition(":")
    if wanted not in ALL:
        raise ValueError(f"{spec!r} names no boundary; there are: {', '.join(ALL)}")
    if colon and not (count.isascii() and count.isdigit() and int(count) > 0):
        raise ValueError(f"{spec!r}: behind the colon stands which time it is reached, from 1, for example {wanted}:3")
    left = int(count or 1)
    end = die or _kill

    def boundary(name: str, stream: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if left == 0:
                end()

    return boundary


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
