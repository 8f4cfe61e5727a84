"""Events that belong to nothing: correlated with an input that is not there, or sent to where nothing arrived.

An append is atomic, so an input that an agent sent is on its stream whenever the sending is on record.
"""

from __future__ import annotations

from typing import Any, Final

from ..agents import facts
from ..agents.intents import input_event_id
from ..agents.run import RunState
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from .finding import event_near

_BUNDLE: Final = "bundle:"


def uncorrelated(run: RunState, stored: StoredEvent, event: Any) -> str:
    """Why the event is none of the activation's that it stands for, in words; empty when it is, or names none.

    ``run``: the fold up to the event before it.
    """
    if stored.correlation is None:
        return ""
    seq = getattr(event, "seq", None)
    if isinstance(event, facts.InputReceived | facts.ReplyReceived | facts.SchedulePlanned) or not isinstance(seq, int):
        return ""
    activation = run.open.get(seq)
    if activation is None or activation.input_event_id == stored.correlation:
        return ""
    return f"{stored.type} of activation {seq} is correlated with {stored.correlation.hex()}, which is not the input {activation.input.input_id!r:.120}"


def lost_send(log: EventLog, stored: StoredEvent, sent: facts.InputSent) -> str:
    """Why what was sent never arrived; empty when it did. A bundle need not hold the other stream."""
    if log.url.startswith(_BUNDLE) and log.head(sent.stream) < 0:
        return ""
    if event_near(log, sent.stream, input_event_id(sent.input_id), stored.position) is not None:
        return ""
    return f"the input {sent.input_id!r:.120} was sent to {sent.stream} at step {sent.step} of activation {sent.seq}, and is not there"
