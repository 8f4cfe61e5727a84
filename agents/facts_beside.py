"""The runtime's events about what stands beside a turn: other aggregates, budgets, signatures.

The rules of ``facts`` hold here too, and its readers find these names there.
"""

from __future__ import annotations

from ..eventlog.registry import event


@event("aggregate.loaded", version=1)
class AggregateLoaded:
    """Another aggregate as the turn saw it: a re-run and a replay see the same. Written with the next thing that is written."""

    seq: int
    step: int
    #: Reads taken before it.
    index: int
    stream: str
    #: Of the last event that was seen; -1 for none.
    version: int


@event("aggregate.saved", version=1)
class AggregateSaved:
    """Events for another aggregate's stream, appended there by the same append."""

    seq: int
    stream: str
    #: Of the first of them.
    version: int
    types: tuple[str, ...]
    #: Digest of all of them.
    digest: bytes


@event("budget.reached", version=1)
class BudgetReached:
    """A model call was not made, because nothing was left for it; the agent's code went on without."""

    seq: int
    step: int
    #: Of the request that was not sent.
    digest: bytes
    #: ``activation`` or ``key``.
    per: str
    tokens: int
    #: Money in 10⁻¹² of the currency.
    picos: int
    #: ``None``: no limit of this kind.
    limit_tokens: int | None
    limit_picos: int | None


@event("budget.raised", version=1)
class BudgetRaised:
    """The agent was allowed more (``ctx.raise_budget``)."""

    seq: int
    step: int
    per: str
    tokens: int
    picos: int


@event("intent.signed", version=1)
class IntentSigned:
    """Who vouches for the intent staged just before, in the same append. Only where workers have keys; no run depends on it."""

    intent_id: str
    key_id: str
    #: See ``signing``: over the stream, and the schema and bytes of ``intent.staged``.
    signature: bytes


@event("intent.distrusted", version=1)
class IntentDistrusted:
    """An intent that is not authentic: nothing was attempted, it has no outcome, and no effector looks at it again."""

    intent_id: str
    why: str
    effector: str
    #: What was found, as it is on the log.
    schema: int
    payload: bytes
    key_id: str = ""
    signature: bytes = b""


@event("intent.readmitted", version=1)
class IntentReadmitted:
    """A person vouches for an intent that was distrusted: effectors look at it again, as it stands here."""

    intent_id: str
    #: Which readmission of this intent it is, from 1; its event id is made of it, so that it counts once.
    number: int
    by: str
    reason: str
    #: Attempts recorded until then.
    attempts: int
    #: Schema and bytes of ``intent.staged``.
    schema: int
    payload: bytes
    key_id: str
    #: See ``signing``: over all of the above and the stream.
    signature: bytes


@event("outcome.signed", version=1)
class OutcomeSigned:
    """Who vouches for an ``intent.settled``: in the same append, or somebody who looked at it later. No run depends on it."""

    intent_id: str
    key_id: str
    #: See ``signing``: over the stream, and the schema and bytes of ``intent.settled``.
    signature: bytes


@event("approval.signed", version=1)
class ApprovalSigned:
    """The same for an ``approval.decided``."""

    approval_id: str
    key_id: str
    signature: bytes


@event("approval.undelivered", version=1)
class ApprovalUndelivered:
    """A question that a surface refused again and again. It waits on, and may be answered in any other way."""

    approval_id: str
    #: As it may be shown.
    sink: str
    why: str
    tries: int
    effector: str


@event("approval.redriven", version=1)
class ApprovalRedriven:
    """A person had a question that was given up published once more."""

    approval_id: str
    by: str
    reason: str


@event("answer.distrusted", version=1)
class AnswerDistrusted:
    """On a stream of its own: a signed answer that is not authentic. It drove nothing."""

    why: str
    #: What came, or its beginning.
    raw: bytes
    #: Bytes that came, and their SHA-256.
    size: int
    digest: bytes
    #: What it claims to be about, which nobody vouches for; empty when it cannot be read.
    stream: str = ""
    approval_id: str = ""


@event("answer.redriven", version=1)
class AnswerRedriven:
    """On the same stream: a person had a distrusted answer looked at again, and then it was authentic."""

    #: Of the ``answer.distrusted``.
    version: int
    by: str
    reason: str
