"""One line about each of the runtime's events, in the words of the glossary. Pure; what it looks like is in ``story``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import msgspec

from ..agents import facts
from ..agents.budgets import Spent, amount
from ..eventlog.clock import SECOND, Micros
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError
from ..eventlog.printing import length, moment, one_line, to_json

_VALUE: Final = 60
_SHORT: Final = (4, 8, 13)
_MOST_WAITS: Final = 3
_READABLE: Final = ("timer-", "signal-", "approval-", "child-")


@attrs.define(eq=False)
class Telling:
    """What a story remembers from line to line."""

    codec: Codec
    #: Something in the stream was written by us: what is in another format there was damaged, and is nobody else's.
    ours: bool = False
    #: Shortened id → the id it stands for.
    short: dict[str, str] = attrs.field(factory=dict)
    #: intent id → when its last attempt was recorded.
    attempted: dict[str, Micros] = attrs.field(factory=dict)
    waits: dict[int, _Wait] = attrs.field(factory=dict)
    #: intent id → seq.
    staged: dict[str, int] = attrs.field(factory=dict)

    def name(self, intent_id: str) -> str:
        """``5f0c…``, longer when another id of the story begins the same way."""
        for size in _SHORT:
            cut = f"{intent_id[:size]}…" if len(intent_id) > size else intent_id
            if self.short.setdefault(cut, intent_id) == intent_id:
                return cut
        return intent_id

    def summary(self, event: Any, recorded_at: Micros) -> str:
        """The line for one of the runtime's events."""
        return _TELL.get(type(event), _any)(self, event, recorded_at)


@attrs.define
class _Wait:
    waits: tuple[str, ...]
    mode: str
    over: bool = False
    ready: set[str] = attrs.field(factory=set)

    def came(self, wait: str) -> None:
        if wait in self.waits:
            self.ready.add(wait)
            if self.mode == "linear":  # it waits on for the rest, until its next turn says otherwise
                return
            self.over = self.over or self.mode == "any" or len(self.ready) == len(self.waits)


def fields_of(values: Mapping[str, Any]) -> str:
    """``order_id=o-1  cents=4200``.

    >>> fields_of({"order_id": "o-1", "cents": 4200})
    'order_id=o-1  cents=4200'
    """
    return "  ".join(f"{name}={one_line(value, _VALUE)}" for name, value in values.items())


def value_of(value: Any) -> str:
    """A value as JSON, so that a text is told from a number, on one line."""
    return one_line(value if isinstance(value, bytes) else to_json(value, short=True), 2 * _VALUE)


def _clock(at: Micros, now: Micros) -> str:
    """``10:14`` on the same day, otherwise with the date; with seconds when it is less than fifty minutes away."""
    text = moment(at)
    near = text[11:16] if at - now >= 3000 * SECOND or at % (60 * SECOND) == 0 else text[11:19]
    return near if text[:10] == moment(now)[:10] else f"{text[:10]} {near}"


def _failure(failure: facts.Failure) -> str:
    return f"{failure.type}: {one_line(failure.message, 2 * _VALUE)}"


def _received(telling: Telling, event: facts.InputReceived, _: Micros) -> str:
    try:
        if event.format == "json":
            payload = msgspec.json.decode(event.payload)
        else:
            payload = telling.codec.tree(event.payload)
    except (LogError, msgspec.MsgspecError):
        payload = event.payload
    said = fields_of(payload) if isinstance(payload, dict) and event.type else value_of(payload)
    return f"{event.type}  {said}  ({one_line(event.input_id, _VALUE)})" if event.type else f"{said}  ({one_line(event.input_id, _VALUE)})"


def _model(_: Telling, event: facts.ModelCallCached, __: Micros) -> str:
    response = event.response
    usage = response.usage
    tokens = f"  {usage.input_tokens} → {usage.output_tokens} tokens" if usage.input_tokens or usage.output_tokens else ""
    tokens += f" for {amount(event.cost)}" if event.cost else ""
    calls = "".join(f"  asks for {call.name}" for call in response.tool_calls[:3])
    attempts = f"  after {response.attempts} attempts" if response.attempts > 1 else ""
    return f'step {event.step}  {one_line(response.model or event.request.model, _VALUE)}{tokens}{attempts}{calls}  "{one_line(response.text, 2 * _VALUE)}"'


def _read(_: Telling, event: facts.ToolCallCached, __: Micros) -> str:
    came = _failure(event.failure) if event.failure is not None else value_of(event.value)
    args = fields_of(event.args)
    return f"read {event.index}  {event.tool}{'  ' + args if args else ''} → {came}"


def _staged(telling: Telling, event: facts.IntentStaged, at: Micros) -> str:
    telling.staged[event.intent_id] = event.seq
    key = f"  key {one_line(event.key, _VALUE)}" if event.key else ""
    expires = f"expires {_clock(event.expires_at, at)}" if event.expires_at else "expired"
    return f"step {event.step}  {event.tool}  {telling.name(event.intent_id)}  {expires}{key}  {fields_of(event.args)}"


def _attempted(telling: Telling, event: facts.IntentAttempted, at: Micros) -> str:
    telling.attempted[event.intent_id] = at
    return f"{telling.name(event.intent_id)}  attempt {event.attempt} by {one_line(event.effector, _VALUE)}"


def _signed(telling: Telling, event: facts.IntentSigned | facts.OutcomeSigned, at: Micros) -> str:
    return f"{telling.name(event.intent_id)}  with key {one_line(event.key_id, _VALUE)}"


def _distrusted(telling: Telling, event: facts.IntentDistrusted, at: Micros) -> str:
    return f"{telling.name(event.intent_id)}  by {one_line(event.effector, _VALUE)}: {one_line(event.why, _VALUE)}"


def _readmitted(telling: Telling, event: facts.IntentReadmitted, _: Micros) -> str:
    because = f": {one_line(event.reason, _VALUE)}" if event.reason else ""
    return f"{telling.name(event.intent_id)}  by {one_line(event.by, _VALUE)} with key {one_line(event.key_id, _VALUE)}{because}"


def _answer_signed(_: Telling, event: facts.ApprovalSigned, __: Micros) -> str:
    return f"{event.approval_id}  with key {one_line(event.key_id, _VALUE)}"


def _undelivered(_: Telling, event: facts.ApprovalUndelivered, __: Micros) -> str:
    return f"{event.approval_id}  after {event.tries} tries  {one_line(event.why, 2 * _VALUE)}"


def _no_answer(_: Telling, event: facts.AnswerDistrusted, __: Micros) -> str:
    about = f"{one_line(event.stream, _VALUE)}  {one_line(event.approval_id, _VALUE)}  " if event.stream else ""
    return f"{about}{event.size} bytes: {one_line(event.why, 2 * _VALUE)}"


def _postponed(telling: Telling, event: facts.IntentPostponed, at: Micros) -> str:
    return f"{telling.name(event.intent_id)}  attempt {event.attempt} failed  again from {_clock(event.retry_at, at)}  {_failure(event.failure)}"


def _settled(telling: Telling, event: facts.IntentSettled, at: Micros) -> str:
    late = _is_late(telling, event.intent_id)
    for wait in telling.waits.values():
        wait.came(event.intent_id)
    begun = telling.attempted.pop(event.intent_id, None)
    took = f"  {length(at - begun)}" if begun is not None and at >= begun else ""
    said = _failure(event.failure) if event.failure is not None else "" if event.value is None and event.status != "OK" else value_of(event.value)
    by = f"  by {one_line(event.settled_by, _VALUE)}" if event.reason else ""
    reason = f"  {one_line(event.reason, 2 * _VALUE)}" if event.reason else ""
    return f"{telling.name(event.intent_id)}  {event.status} {said}".rstrip() + f"{took}{'  late' if late else ''}{by}{reason}"


def _is_late(telling: Telling, intent_id: str) -> bool:
    """Nobody waits for it any more (S-7.4). An intent staged before the story's first line is not judged."""
    seq = telling.staged.pop(intent_id, None)
    return seq is not None and not any(intent_id in wait.waits and not wait.over for wait in telling.waits.values())


def _armed(_: Telling, event: facts.TimerArmed, at: Micros) -> str:
    return f"step {event.step}  {event.timer_id}  fires {_clock(event.fires_at, at)}"


def _fired(telling: Telling, event: facts.TimerFired, at: Micros) -> str:
    wait = telling.waits.get(event.seq)
    if event.timer_id:
        if wait is not None:
            wait.came(event.timer_id)
        return event.timer_id
    open_waits = [each for each in wait.waits if each not in wait.ready] if wait is not None else []
    if wait is not None:
        wait.over = True
    return f"deadline of {_clock(event.due_at, at)} passed{'; nothing from ' + _waits(telling, open_waits) if open_waits else ''}"


def _waits(telling: Telling, waits: Any, mode: str = "all") -> str:
    names = [wait if wait.startswith(_READABLE) else telling.name(wait) for wait in waits[:_MOST_WAITS]]
    more = f" and {len(waits) - _MOST_WAITS} more" if len(waits) > _MOST_WAITS else ""
    return f"{'any of ' if mode == 'any' and len(waits) > 1 else ''}{', '.join(names)}{more}"


def _suspended(telling: Telling, event: facts.Suspended, at: Micros) -> str:
    telling.waits[event.seq] = _Wait(event.waits, event.mode)
    what = f"waits for {_waits(telling, event.waits, event.mode)}" if event.waits else "waits"
    return f"{what}  until {_clock(event.deadline, at)}"


def _completed(telling: Telling, event: facts.Completed, _: Micros) -> str:
    telling.waits.pop(event.seq, None)
    return "cancelled" if event.cancelled else value_of(event.output)


def _traced(_: Telling, event: facts.Traced, __: Micros) -> str:
    said = one_line(event.text, 2 * _VALUE)
    return f"{said}  {fields_of(event.fields)}" if event.fields else said


def _failed(_: Telling, event: facts.ActivationFailed, at: Micros) -> str:
    after = f"again at {moment(event.retry_at)[11:19]}" if event.retry_at is not None else "parked"
    return f"attempt {event.attempt}  at step {event.step}  {after}  {_failure(event.failure)}"


def _redriven(_: Telling, event: facts.InputRedriven | facts.ApprovalRedriven, __: Micros) -> str:
    name = event.input_id if isinstance(event, facts.InputRedriven) else event.approval_id
    return f"{one_line(name, _VALUE)}  by {one_line(event.by, _VALUE)}  {one_line(event.reason, 2 * _VALUE)}"


def _blocked(_: Telling, event: facts.StreamBlocked, __: Micros) -> str:
    return f"at version {event.at_version}  {_failure(event.failure)}"


def _continued(telling: Telling, event: facts.Continued, at: Micros) -> str:
    telling.waits.pop(event.seq, None)
    return f"goes on afresh with {_received(telling, event.input, at)}"


def _asked(_: Telling, event: facts.ApprovalRequested, at: Micros) -> str:
    details = f"  {fields_of(event.details)}" if event.details else ""
    return f'step {event.step}  "{one_line(event.question, 2 * _VALUE)}"{details}  of {one_line(event.channel, _VALUE)} until {_clock(event.expires_at, at)}'


def _answered(_: Telling, event: facts.ApprovalDecided, __: Micros) -> str:
    reason = f"  {one_line(event.reason, 2 * _VALUE)}" if event.reason else ""
    return f"{event.approval_id}  {'approved' if event.approved else 'denied'} by {one_line(event.by, _VALUE)}{reason}"


def _signalled(_: Telling, event: facts.SignalReceived, __: Micros) -> str:
    return f"{one_line(event.name, _VALUE)}  {value_of(event.payload)}  ({one_line(event.signal_id, _VALUE)})"


def _taken(_: Telling, event: facts.SignalTaken, __: Micros) -> str:
    return f"step {event.step}  {one_line(event.name, _VALUE)}  ({one_line(event.signal_id, _VALUE)})"


def _sent(_: Telling, event: facts.InputSent, __: Micros) -> str:
    return f"step {event.step}  to {one_line(event.stream, _VALUE)}  ({one_line(event.input_id, _VALUE)})"


def _replied(_: Telling, event: facts.ReplyReceived, __: Micros) -> str:
    return f"{one_line(event.stream, _VALUE)}  {'was cancelled' if event.cancelled else value_of(event.output)}"


def _cancelled(_: Telling, event: facts.CancelRequested, __: Micros) -> str:
    return f"activation {event.seq}  by {one_line(event.by, _VALUE)}{'  ' + one_line(event.reason, 2 * _VALUE) if event.reason else ''}"


def _patched(_: Telling, event: facts.Patched, __: Micros) -> str:
    return one_line(event.name, 2 * _VALUE)


def _budget_reached(_: Telling, event: facts.BudgetReached, __: Micros) -> str:
    limits = [f"{event.limit_tokens} tokens"] * (event.limit_tokens is not None) + ([str(amount(event.limit_picos))] if event.limit_picos is not None else [])
    return f"step {event.step}  the {event.per} has spent {Spent(event.tokens, event.picos)} of {' and '.join(limits)}; the call was not made"


def _budget_raised(_: Telling, event: facts.BudgetRaised, __: Micros) -> str:
    return f"step {event.step}  by {Spent(event.tokens, event.picos)} for the {event.per}"


def _any(_: Telling, event: Any, __: Micros) -> str:
    return fields_of({field.name: getattr(event, field.name) for field in attrs.fields(type(event))})


_TELL: Final[dict[type, Callable[[Telling, Any, Micros], str]]] = {
    facts.InputReceived: _received,
    facts.ModelCallCached: _model,
    facts.ToolCallCached: _read,
    facts.IntentStaged: _staged,
    facts.IntentAttempted: _attempted,
    facts.IntentSigned: _signed,
    facts.IntentDistrusted: _distrusted,
    facts.IntentReadmitted: _readmitted,
    facts.OutcomeSigned: _signed,
    facts.ApprovalSigned: _answer_signed,
    facts.ApprovalUndelivered: _undelivered,
    facts.AnswerDistrusted: _no_answer,
    facts.IntentPostponed: _postponed,
    facts.IntentSettled: _settled,
    facts.TimerArmed: _armed,
    facts.TimerFired: _fired,
    facts.Traced: _traced,
    facts.Suspended: _suspended,
    facts.Completed: _completed,
    facts.Continued: _continued,
    facts.ApprovalRequested: _asked,
    facts.ApprovalDecided: _answered,
    facts.SignalReceived: _signalled,
    facts.SignalTaken: _taken,
    facts.InputSent: _sent,
    facts.ReplyReceived: _replied,
    facts.CancelRequested: _cancelled,
    facts.Patched: _patched,
    facts.BudgetReached: _budget_reached,
    facts.BudgetRaised: _budget_raised,
    facts.ActivationFailed: _failed,
    facts.InputRedriven: _redriven,
    facts.ApprovalRedriven: _redriven,
    facts.StreamBlocked: _blocked,
}
