"""What became of an input: its end, found by what the log says. One look at a time, so that any shell can wait in between."""

from __future__ import annotations

from typing import Any

import attrs

from ..eventlog.codec import Codec
from ..eventlog.log import EventLog
from . import facts
from .errors import ActivationCancelled, ActivationParked
from .intents import input_event_id


@attrs.frozen
class Ended:
    """The activation, or the last one that continued it, is over."""

    completed: facts.Completed

    def value(self, stream: str, input_id: str) -> Any:
        """Its output as plain values; raises ``ActivationCancelled``."""
        if self.completed.cancelled:
            raise ActivationCancelled(f"{stream}, input {input_id!r}, was cancelled")
        return self.completed.output


class Following:
    """Follows one input along its stream. Everything that an activation writes is correlated with its input."""

    def __init__(self, stream: str, input_id: str, version: int = -1) -> None:
        self.stream, self.input_id = stream, input_id
        self._event_id = input_event_id(input_id)
        self._after = version - 1 if version > 0 else -1
        self._received = False
        self._parked: facts.ActivationFailed | None = None
        self._blocked = ""

    def look(self, log: EventLog, codec: Codec) -> Ended | int:
        """Its end, or the position behind which to wait for news. Raises ``ActivationParked`` when it is a dead letter now."""
        position = log.last_position()
        for stored in log.read(self.stream, after=self._after):
            self._after = stored.version
            if stored.type == "stream.blocked":
                self._blocked = codec.decode_stored(stored).failure.message
            elif stored.correlation != self._event_id:
                continue
            elif stored.type == "input.received":
                self._received = True
            elif stored.type == "activation.completed":
                return Ended(codec.decode_stored(stored))
            elif stored.type == "activation.continued":
                self._event_id, self._parked = input_event_id(codec.decode_stored(stored).input.input_id), None
            elif stored.type == "activation.failed":
                failed: facts.ActivationFailed = codec.decode_stored(stored)
                self._parked = failed if failed.retry_at is None else None
            elif stored.type == "input.redriven":
                self._parked = None
        if self._parked is not None:
            raise ActivationParked(self.stream, self._parked.seq, self.input_id, self._parked.failure)
        return position

    @property
    def standing(self) -> str:
        """What is known of it so far, in words."""
        if self._blocked:
            return f"the stream is blocked: {self._blocked}"
        return "it has not ended" if self._received else "it is not on the stream"
