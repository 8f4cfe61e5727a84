"""The phases of one intent, in the order that is the crash argument: each a small function that can be tested alone.

::

    verify → refuse expired → claim → attempt recorded → execute → settle, or postpone → checkpoint

* **verify, refuse expired** are decided before any store is asked (S-6.8): an outage cannot make a deadline fail open.
* **attempt before call**: a crash from here on is seen by whoever comes next as an attempt without an outcome, never as
  an intent nobody touched. That is what makes UNKNOWN possible (S-6.4, S-6.5).
* **postponed, not settled**: an attempt that failed in a way its tool marks as one that may heal is recorded as over, with
  the moment of the next. A crash before that record is a crash in mid-call; after it, everybody knows that nothing of the
  intent is under way, so the next attempt is no repetition of an unknown one.
* **settle once**: the outcome's event id is made of the intent's id, so the store itself refuses a second, different one
  (S-6.2), and its append carries the fencing token, so a stale owner's is refused too.
* **checkpoint last**: a crash before it reads the intent again and finds it settled.

Nothing here waits except ``execute`` and ``reconcile``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.calling import called, raised
from ..agents.errors import ArgumentRefused
from ..agents.failures import text_of
from ..agents.intents import ERROR, EXPIRED, OK, REJECTED, UNKNOWN, attempt_event_id, fact_id, settlement_event_id
from ..agents.signing import OFF, Signature, Verifier
from ..agents.tools import IntentInfo, Tool, ToolSet, bind_arguments
from ..eventlog.clock import Micros, to_datetime
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError
from ..eventlog.events import NewEvent
from .outbox import Pending
from .threads import ask_before, in_own_thread

MOST_ATTEMPTS: Final = 10
"""Attempts at an idempotent tool whose end was never seen; after that it is the tool that kills its effector."""
MOST_BYTES: Final = 64 << 20
"""The largest result, encoded, that is recorded; every dedup store takes as much."""


@attrs.frozen
class Outcome:
    """How an intent ended, before it is recorded."""

    status: str
    value: Any = None
    failure: facts.Failure | None = None
    #: Set when the tool marks its error as one that may heal: how long to wait at least (see ``next_attempt``).
    retry_after: timedelta | None = None


def verify(pending: Pending, verifier: Verifier | None = None) -> str | None:
    """Authenticity, decided first (S-6.8): why nothing may be done about the intent, or ``None``. Without a verifier the log vouches."""
    if verifier is None:
        return None
    if pending.readmitted is not None:
        return verifier.objection_to_readmission(pending.readmitted, pending.stream)
    if pending.unsigned and verifier.mode != OFF:
        return f"its signature cannot be read: {pending.unsigned}"
    return verifier.objection(pending.signature, pending.stream, pending.schema, pending.data)


def refuse_expired(pending: Pending, tool: Tool | None, now: Micros) -> Outcome | None:
    """What an intent past its deadline is reported as; it is never run (S-6.3). 0 reads as expired (S-5.5).

    EXPIRED only when nothing was ever attempted. An attempt without an outcome is UNKNOWN, or ERROR for an idempotent tool;
    one that is known to have failed is the ERROR that it was.
    """
    if now < pending.intent.expires_at:
        return None
    deadline = to_datetime(pending.intent.expires_at).isoformat() if pending.intent.expires_at else "none"
    if pending.attempts == 0:
        why = f"its deadline was {deadline}" if pending.intent.expires_at else "it was staged without a deadline, or with a ttl of zero or less"
        return Outcome(EXPIRED, failure=facts.Failure("Expired", f"never attempted; {why}"))
    if pending.last_postponed is not None:
        detail = f"attempt {pending.attempts}; its deadline, {deadline}, came before the next"
        return Outcome(ERROR, failure=attrs.evolve(pending.last_postponed.failure, detail=detail))
    text = f"attempt {pending.attempts} was begun and its end was never seen; the deadline, {deadline}, has passed since"
    return Outcome(ERROR if tool is not None and tool.idempotent else UNKNOWN, failure=facts.Failure("Expired", text))


def refuse_unfit(pending: Pending, tools: ToolSet, codec: Codec) -> Outcome | tuple[Tool, dict[str, Any]]:
    """The tool and its bound arguments, or why the callable is not run here.

    REJECTED says that it never ran (S-6.1). Of an intent that was attempted, by an effector that knew its tool, that would be
    untrue: it is the ERROR that its last attempt was, or UNKNOWN when the end of that was never seen.
    """
    found = _fitted(pending, tools, codec)
    return found if isinstance(found[0], Tool) else _unfit(pending, *found)


def is_unfit(pending: Pending, tools: ToolSet, codec: Codec) -> bool:
    """Whether the effector that staged it knew another version of its tools: this one knows none of that name, or one that
    cannot be called with these arguments."""
    return not isinstance(_fitted(pending, tools, codec)[0], Tool)


def _fitted(pending: Pending, tools: ToolSet, codec: Codec) -> tuple[Tool, dict[str, Any]] | tuple[str, str]:
    tool = tools.get(pending.intent.tool)
    if tool is None:
        known = ", ".join(sorted(each.name for each in tools)) or "none"
        return "UnknownTool", f"this effector knows no tool {pending.intent.tool!r} (known: {known})"
    if not tool.side_effect:
        return "WrongToolKind", f"{tool.name} is read-only and has no place in the outbox"
    try:
        return tool, bind_arguments(codec, tool, pending.intent.args)
    except ArgumentRefused as problem:
        return "ArgumentRefused", str(problem)


def _unfit(pending: Pending, kind: str, why: str) -> Outcome:
    if pending.attempts == 0:
        return Outcome(REJECTED, failure=facts.Failure(kind, why))
    if pending.last_postponed is not None:
        return Outcome(ERROR, failure=attrs.evolve(pending.last_postponed.failure, detail=f"attempt {pending.attempts}; no other is made: {why}"))
    return Outcome(UNKNOWN, failure=facts.Failure(kind, f"attempt {pending.attempts} was begun elsewhere and its end was never seen; here, {why}"))


async def recover(pending: Pending, tool: Tool, bound: dict[str, Any], codec: Codec) -> Outcome | None:
    """After a crash in mid-call: ``None`` to attempt again (idempotent, or known to have failed), else what ``reconcile`` found, else UNKNOWN (S-6.5)."""
    if pending.attempts == 0 or pending.last_postponed is not None:
        return None
    if tool.idempotent:
        if pending.unseen < MOST_ATTEMPTS:
            return None
        return Outcome(ERROR, failure=facts.Failure("GaveUp", f"{pending.unseen} attempts were begun and none was seen to end"))
    if tool.reconcile is not None:
        seconds = tool.timeout.total_seconds()
        asked = await called(functools.partial(_called, tool, tool.reconcile, _info(pending, pending.attempts), bound), seconds)
        if asked.late and asked.value is None:
            text = f"its reconcile function ran longer than {seconds:g} s"
            return Outcome(UNKNOWN, failure=facts.Failure("TimedOut", text, raised(asked.problem)))
        problem = asked.problem
        if asked.value is not None:
            try:
                return Outcome(OK, value=_recordable(asked.value, tool, codec))
            except BaseException as refused:  # and so is what it found, when that cannot be recorded, whatever its own methods raise
                problem = refused
        if problem is not None:  # whatever a reconciler raises, it could not tell
            return Outcome(UNKNOWN, failure=facts.Failure(type(problem).__name__, f"its reconcile function failed: {text_of(problem)}"))
    return Outcome(
        UNKNOWN,
        failure=facts.Failure(
            "Unknown", f"attempt {pending.attempts} of {tool.name} was begun and its end was never seen; the tool is not declared idempotent"
        ),
    )


async def execute(pending: Pending, tool: Tool, bound: dict[str, Any], codec: Codec) -> Outcome:
    """Call the tool under its timeout. ERROR when it raised, timed out or returned something unencodable: it may have run.

    A tool's ``BaseException`` is an ERROR as well, and so is a cancellation that it brought on itself; only one of who waits
    here is passed on. Once its time is over whatever it raises is ``TimedOut``, and never tried again: nobody can say what an
    effect did that was cut off, however harmless its tool calls the error that came of it. A value that it returns after it
    was told to stop is its outcome all the same: then the tool does know what happened, and an ERROR would say of money
    that moved that nobody knows, and lose what the other side calls it.
    """
    arguments = bound | ({"intent": _info(pending, pending.attempts)} if tool.takes_intent else {})
    seconds = tool.timeout.total_seconds()
    ended = await called(functools.partial(_called, tool, tool.fn, None, arguments), seconds)
    if ended.problem is not None and ended.late:
        text = f"{tool.name} ran longer than {seconds:g} s; whether it took effect is not known"
        return Outcome(ERROR, failure=facts.Failure("TimedOut", text, raised(ended.problem)))
    if ended.problem is not None:
        failure = facts.Failure(type(ended.problem).__name__, text_of(ended.problem))
        return Outcome(ERROR, failure=failure, retry_after=tool.policies.waits(ended.problem))
    try:
        return Outcome(OK, value=_recordable(ended.value, tool, codec))
    except _TooLarge as problem:
        return Outcome(ERROR, failure=facts.Failure("ResultTooLarge", str(problem)))
    except BaseException as problem:  # whatever the value's own methods raise: it ran, and SystemExit in a task would end the loop
        return Outcome(ERROR, failure=facts.Failure("Unencodable", f"{tool.name} ran, but its result cannot be recorded: {_told(problem)}"))


def next_attempt(pending: Pending, tool: Tool, outcome: Outcome, now: Micros) -> Micros | Outcome:
    """When to try again after ``outcome``, or the outcome to settle with: the same one, with why there is no next attempt."""
    if outcome.retry_after is None or outcome.failure is None:
        return outcome
    found = tool.policies.next_attempt(pending.attempts, outcome.retry_after, now, pending.intent.expires_at)
    if isinstance(found, str):
        return attrs.evolve(outcome, failure=attrs.evolve(outcome.failure, detail=found), retry_after=None)
    return found


class _TooLarge(Exception):
    """A result of more bytes than an outcome may hold."""


def _told(problem: BaseException) -> str:
    return text_of(problem) if isinstance(problem, LogError) else f"{type(problem).__name__}: {text_of(problem)}"


def _recordable(value: Any, tool: Tool, codec: Codec) -> Any:
    encoded = codec.encode_value(value, tool.returns)
    if len(encoded) > MOST_BYTES:
        raise _TooLarge(
            f"{tool.name} ran, but its result of {len(encoded):,} bytes is more than an outcome holds ({MOST_BYTES:,}). "
            "Keep it elsewhere and return where it is."
        )
    return codec.tree(encoded)


async def _called(tool: Tool, fn: Any, first: Any, arguments: dict[str, Any]) -> Any:
    leading = () if first is None else (first,)
    if inspect.iscoroutinefunction(fn):
        ask_before()
        return await fn(*leading, **arguments)
    result = await in_own_thread(functools.partial(fn, *leading, **arguments), tool.name)
    return await result if isinstance(result, Awaitable) else result


def _info(pending: Pending, attempt: int) -> IntentInfo:
    return IntentInfo(pending.intent.intent_id, pending.stream, pending.intent.seq, pending.intent.step, attempt)


def attempted_event(codec: Codec, pending: Pending, effector: str, token: int) -> NewEvent:
    """The attempt that is about to be made."""
    fact = facts.IntentAttempted(pending.intent.intent_id, pending.attempts + 1, effector, token)
    event_id = attempt_event_id(fact.intent_id, fact.attempt)
    return codec.stage(fact, event_id=event_id, correlation=pending.correlation, causation=pending.event_id)


def distrusted_event(codec: Codec, pending: Pending, why: str, effector: str) -> NewEvent:
    """An intent that is not authentic, set aside with its bytes and those of its signature: no attempt, no outcome."""
    signature = pending.signature or Signature("", b"")
    fact = facts.IntentDistrusted(pending.intent.intent_id, why, effector, pending.schema, pending.data, signature.key_id, signature.signature)
    event_id = fact_id("distrusted", pending.event_id.hex())
    return codec.stage(fact, event_id=event_id, correlation=pending.correlation, causation=pending.event_id)


def postponed_event(codec: Codec, pending: Pending, failure: facts.Failure, retry_at: Micros, effector: str) -> NewEvent:
    """The attempt just made, ended, and when the next one is due."""
    fact = facts.IntentPostponed(pending.intent.intent_id, pending.attempts, failure, retry_at, effector)
    event_id = fact_id("postponed", fact.intent_id, fact.attempt)
    return codec.stage(fact, event_id=event_id, correlation=pending.correlation, causation=pending.event_id)


def settled_event(codec: Codec, pending: Pending, outcome: Outcome, effector: str) -> NewEvent:
    """The outcome as a fact; its id is the intent's, so that there can be only one (S-6.2)."""
    fact = facts.IntentSettled(pending.intent.intent_id, outcome.status, outcome.value, outcome.failure, pending.attempts, effector)
    return codec.stage(
        fact, event_id=settlement_event_id(pending.intent.intent_id, pending.attempts), correlation=pending.correlation, causation=pending.event_id
    )
