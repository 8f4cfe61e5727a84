"""How a turn ends (``Complete``, ``Suspend``) and what a resumed turn is told (``EffectResult``)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import attrs
import msgspec

from ..eventlog.clock import MILLISECOND, from_timedelta
from . import errors, facts, intents
from .errors import DefinitionError


@attrs.frozen
class Complete:
    """The activation is over. ``output`` is any value the event log can hold."""

    output: Any = b""


@attrs.frozen
class Suspend:
    """The activation waits for its open intents and timers (S-7.1); ``snapshot`` comes back as ``ctx.snapshot``."""

    snapshot: bytes = attrs.field(default=b"", validator=attrs.validators.instance_of(bytes))
    adapter: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    #: Milliseconds until the activation resumes with a timed-out result; ``None``: the agent's default (S-7.3).
    timeout_ms: int | None = None
    timeout: timedelta | None = None
    #: ``all``: resume when everything has an outcome; ``any``: with the first.
    wait: str = attrs.field(default="all", validator=attrs.validators.in_(("all", "any")))

    def length(self, default: int) -> int:
        """How long to wait, in µs; raises ``DefinitionError`` for a timeout that is not longer than zero."""
        if self.timeout_ms is None and self.timeout is None:
            return default
        length = from_timedelta(self.timeout) if self.timeout is not None else (self.timeout_ms or 0) * MILLISECOND
        if length <= 0:
            raise DefinitionError(f"Suspend: the timeout must be longer than zero, not {self.timeout or self.timeout_ms}")
        return length


_FAILURES: Final = {
    intents.ERROR: errors.EffectErrored,
    intents.REJECTED: errors.EffectRejected,
    intents.EXPIRED: errors.EffectExpired,
    intents.CANCELLED: errors.EffectCancelled,
    intents.UNKNOWN: errors.EffectUnknown,
    intents.TIMED_OUT: errors.EffectTimedOut,
}


@attrs.frozen
class EffectResult:
    """The outcome of one wait. Using the value of anything but OK raises, so that an agent which ignores it fails closed."""

    #: The intent or timer.
    intent_id: str
    #: OK, ERROR, REJECTED, EXPIRED, CANCELLED, UNKNOWN, or TIMED_OUT when the deadline came first.
    status: str
    tool: str = ""
    failure: facts.Failure | None = None
    attempts: int = 0
    _value: Any = None

    @property
    def ok(self) -> bool:
        """Whether the effect ran and its result was recorded."""
        return self.status == intents.OK

    @property
    def value(self) -> Any:
        """What the tool returned; raises ``EffectFailed`` unless ``ok``."""
        if not self.ok:
            raise self.error()
        return self._value

    @property
    def payload(self) -> bytes:
        """``value`` as canonical JSON (a ``bytes`` value as it is); raises ``EffectFailed`` unless ``ok``."""
        value = self.value
        return value if isinstance(value, bytes) else msgspec.json.encode(value, order="sorted")

    def error(self) -> errors.EffectFailed:
        """The exception that says how it ended."""
        said = f": {': '.join(filter(None, (self.failure.type, self.failure.message)))}" if self.failure else ""
        return _FAILURES[self.status](
            f"{self.tool or 'wait'} {self.intent_id} ended {self.status}{said}. Look at ctx.resume_result.status before using its value."
        )


def result_of(intent: Any, fired: bool = False) -> EffectResult:
    """The result of an ``Intent`` as the log has it now; without an outcome it reads as timed out."""
    if fired:
        return EffectResult(intent, intents.OK)
    settled = intent.settled
    if settled is None:
        return EffectResult(intent.intent_id, intents.TIMED_OUT, intent.tool, attempts=intent.attempts)
    return EffectResult(intent.intent_id, settled.status, intent.tool, settled.failure, settled.attempts, settled.value)
