"""The runtime's own events: the words in which every run is written down.

Only facts live here, as frozen classes; what may follow what is in ``lifecycle``, what they add up to in ``run``.
Times are microseconds since 1970-01-01 UTC. ``seq`` is the ordinal of the activation in its stream, which is the
ordinal of the input it answers; ``step`` the ordinal of the durable step inside it (S-1.4).
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..eventlog.registry import event
from .facts_beside import AggregateLoaded as AggregateLoaded  # noqa: PLC0414 - its readers find it here
from .facts_beside import AggregateSaved as AggregateSaved  # noqa: PLC0414 - its readers find it here
from .facts_beside import AnswerDistrusted as AnswerDistrusted  # noqa: PLC0414 - its readers find it here
from .facts_beside import AnswerRedriven as AnswerRedriven  # noqa: PLC0414 - its readers find it here
from .facts_beside import ApprovalRedriven as ApprovalRedriven  # noqa: PLC0414 - its readers find it here
from .facts_beside import ApprovalSigned as ApprovalSigned  # noqa: PLC0414 - its readers find it here
from .facts_beside import ApprovalUndelivered as ApprovalUndelivered  # noqa: PLC0414 - its readers find it here
from .facts_beside import BudgetRaised as BudgetRaised  # noqa: PLC0414 - its readers find it here
from .facts_beside import BudgetReached as BudgetReached  # noqa: PLC0414 - its readers find it here
from .facts_beside import IntentDistrusted as IntentDistrusted  # noqa: PLC0414 - its readers find it here
from .facts_beside import IntentReadmitted as IntentReadmitted  # noqa: PLC0414 - its readers find it here
from .facts_beside import IntentSigned as IntentSigned  # noqa: PLC0414 - its readers find it here
from .facts_beside import OutcomeSigned as OutcomeSigned  # noqa: PLC0414 - its readers find it here
from .models import ModelRequest, ModelResponse


@attrs.frozen
class Failure:
    """An exception as data: what a replay raises again is built from the same three fields."""

    type: str
    message: str
    detail: str = ""


@event("input.received", version=1)
class InputReceived:
    """Somebody wants something of this key (S-2). Holds nothing that would differ when the same input is sent twice."""

    input_id: str
    #: Registered event type of the payload; empty for a plain value.
    type: str
    schema: int
    #: How ``payload`` is written: ``msgpack`` (canonical, checked at the door) or ``json`` (checked when handled).
    format: str
    payload: bytes
    #: Stream that is told when the activation completes; empty for nobody. Continued: a line end and the first input's id follow.
    reply_to: str = ""


@event("model_call.cached", version=1)
class ModelCallCached:
    """A provider's answer, written before the agent sees it (S-4.1)."""

    seq: int
    step: int
    #: ``ctx.now`` of the turn that asked.
    now: int
    digest: bytes
    request: ModelRequest
    response: ModelResponse
    #: Version of the last event the turn that asked had seen; what arrived behind it the turn knew nothing of.
    seen: int = -1
    #: What it cost by the app's prices of that moment, in 10⁻¹² of their currency.
    cost: int = 0


@event("model_call.failed", version=1)
class ModelCallFailed:
    """A provider did not answer and the agent went on: what it was told, for re-runs. Staged with its turn; not an answer (S-4.6)."""

    seq: int
    step: int
    failure: Failure


@event("tool_call.cached", version=1)
class ToolCallCached:
    """What a read-only tool or ``ctx.run`` returned or raised, on its own counter (S-4.7, S-4.8)."""

    seq: int
    index: int
    now: int
    tool: str
    digest: bytes
    args: dict[str, Any]
    value: Any
    #: Set instead of ``value`` when it raised. Forgotten when the turn itself fails, so that a retry asks again.
    failure: Failure | None = None
    seen: int = -1


@event("intent.staged", version=1)
class IntentStaged:
    """The agent wants something done in the world (S-5)."""

    intent_id: str
    seq: int
    step: int
    tool: str
    args: dict[str, Any]
    #: Digest of (tool, canonical args).
    digest: bytes
    #: 0 reads as expired, never as unbounded (S-5.5).
    expires_at: int
    #: Business key, or empty when the intent is named by its position (S-5.3).
    key: str = ""


@event("intent.attempted", version=1)
class IntentAttempted:
    """Recorded before the tool is called (S-6.4)."""

    intent_id: str
    attempt: int
    effector: str
    token: int


@event("intent.postponed", version=1)
class IntentPostponed:
    """An attempt ended in an error that its tool marks as one that may heal; the next one is made from ``retry_at`` on."""

    intent_id: str
    attempt: int
    failure: Failure
    retry_at: int
    effector: str


@event("intent.settled", version=1)
class IntentSettled:
    """How an intent ended; the first one is final (S-6.1, S-6.2)."""

    intent_id: str
    status: str
    value: Any = None
    failure: Failure | None = None
    #: Attempts made until then.
    attempts: int = 0
    settled_by: str = ""
    reason: str = ""


@event("timer.armed", version=1)
class TimerArmed:
    """A wait for a moment."""

    timer_id: str
    seq: int
    step: int
    fires_at: int


@event("timer.fired", version=1)
class TimerFired:
    """A timer's moment has come; an empty ``timer_id`` is the suspension's own deadline (S-7.3)."""

    seq: int
    timer_id: str
    due_at: int


@event("traced", version=1)
class Traced:
    """A remark the agent left with ``ctx.trace``; discarded with a failed turn like everything else."""

    seq: int
    step: int
    text: str
    fields: dict[str, Any]


@event("activation.suspended", version=1)
class Suspended:
    """A turn's end: the activation waits (S-7.1)."""

    seq: int
    now: int
    #: Where the next turn goes on counting.
    step: int
    index: int
    waits: tuple[str, ...]
    #: ``all`` or ``any``.
    mode: str
    deadline: int
    snapshot: bytes = b""
    adapter: str = ""
    #: Version of the last event this turn had seen: a re-run of the code sees no more either.
    seen: int = -1
    #: The agent's code version, as it was when the activation began.
    code: int = 0


@event("activation.completed", version=1)
class Completed:
    """A turn's end: the activation is over."""

    seq: int
    now: int
    step: int
    index: int
    output: Any
    seen: int = -1
    code: int = 0
    #: It ended because it was cancelled.
    cancelled: bool = False


@event("activation.continued", version=1)
class Continued:
    """A turn's end: the activation is over and the next one begins with this input, before any that wait in line."""

    seq: int
    now: int
    step: int
    index: int
    input: InputReceived
    seen: int = -1
    code: int = 0


@event("approval.requested", version=1)
class ApprovalRequested:
    """A person is asked (S-7.5). Unanswered at ``expires_at`` it reads as denied (S-7.3)."""

    approval_id: str
    seq: int
    step: int
    question: str
    channel: str
    details: dict[str, Any]
    #: Digest of question, channel and details: what an answer is bound to.
    digest: bytes
    expires_at: int


@event("approval.decided", version=1)
class ApprovalDecided:
    """A person's answer; the first one is final."""

    approval_id: str
    digest: bytes
    approved: bool
    by: str
    reason: str = ""


@event("signal.received", version=1)
class SignalReceived:
    """Somebody tells this key something, whether or not it waits for it now."""

    signal_id: str
    name: str
    payload: Any = None


@event("signal.taken", version=1)
class SignalTaken:
    """An activation's wait got this signal; nobody else gets it."""

    signal_id: str
    name: str
    seq: int
    step: int


@event("input.sent", version=1)
class InputSent:
    """An input for another key, delivered by the same append."""

    seq: int
    step: int
    stream: str
    input_id: str
    digest: bytes


@event("reply.received", version=1)
class ReplyReceived:
    """What became of an input this key sent to another."""

    stream: str
    input_id: str
    output: Any = None
    cancelled: bool = False


@event("cancel.requested", version=1)
class CancelRequested:
    """An activation is to end, after cleaning up."""

    seq: int
    by: str
    reason: str = ""


@event("patched", version=1)
class Patched:
    """The activation's code went the new way at a guard of this name (``ctx.patched``)."""

    seq: int
    name: str


@event("activation.failed", version=1)
class ActivationFailed:
    """All that a failed turn leaves behind besides its paid answers (S-3.3). ``retry_at`` ``None``: parked as a dead letter."""

    seq: int
    input_id: str
    attempt: int
    failure: Failure
    step: int
    index: int
    retry_at: int | None
    #: Parked, and later inputs of the key wait for it instead of going on (the agent's ``on_parked="wait"``).
    holds: bool = False
    #: ``ctx.now`` of the turn, and version of the last event it had seen: a replay fails it again as of the same moment.
    now: int = 0
    seen: int = -1


@event("input.redriven", version=1)
class InputRedriven:
    """A person put a parked input back in line."""

    seq: int
    input_id: str
    by: str
    reason: str


@event("stream.blocked", version=1)
class StreamBlocked:
    """The stream holds an event this code cannot read; its turns stop, other keys go on (S-8.3)."""

    at_version: int
    failure: Failure


@event("schedule.planned", version=1)
class SchedulePlanned:
    """On a schedule's own stream: what it has just delivered, in the same append, and what it delivers next."""

    agent: str
    #: Expression and zone, or the period: another text is another plan.
    plan: str
    #: Moments that this append delivered.
    delivered: tuple[int, ...]
    #: The next moment; ``None``: there is none.
    next_at: int | None
    #: The agent's stream.
    stream: str
    #: What will be delivered there.
    input: InputReceived | None


FACTS: Final[tuple[type, ...]] = tuple(kind for kind in list(globals().values()) if isinstance(kind, type) and "__event_type__" in vars(kind))
"""Every runtime event class."""

ARRIVALS = frozenset(
    {f"{name}.received" for name in ("input", "signal", "reply")}
    | {f"intent.{name}" for name in ("attempted", "postponed", "settled", "distrusted", "readmitted")}
    | {f"approval.{name}" for name in ("decided", "signed", "undelivered", "redriven")}
    | {"outcome.signed", "cancel.requested", "input.redriven", "stream.blocked"}
)
"""Types that others than the key's worker append; a turn is rebased over them (S-3.4)."""
