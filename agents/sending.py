"""The door through which inputs come: checked, durable, accepted once (S-2)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import msgspec

from ..eventlog.codec import Codec
from ..eventlog.errors import EventIdConflict, LogError
from ..eventlog.events import NewEvent
from ..eventlog.log import AppendRequest, Duplicate, EventLog, StreamAppend, Wake
from ..eventlog.names import stream_name
from ..eventlog.registry import check_event_type
from ..eventlog.versions import ANY
from . import facts
from .app import App, Input
from .appends import TURNS
from .errors import InputRefused
from .intents import input_event_id


@attrs.frozen
class Receipt:
    """An input is durable: where it stands, and whether it had been accepted before."""

    stream: str
    version: int
    position: int
    input_id: str
    duplicate: bool


def typed_input(app: App, given: Input) -> tuple[str, NewEvent]:
    """(stream, staged event) of an input, checked against the app; raises ``DefinitionError``, ``InvalidName`` or ``InputRefused``."""
    app.agent(given.agent)
    return staged_input(app.codec, given)


def staged_input(codec: Codec, given: Input) -> tuple[str, NewEvent]:
    """The same without the app; ``codec`` must know the payload's type. Raises ``InvalidName`` or ``InputRefused``."""
    if hasattr(type(given.payload), "__event_type__"):
        kind, schema, payload = codec.encode(given.payload)
    else:
        kind, schema, payload = "", 0, codec.encode_value(given.payload, Any)
    return stream_name(given.agent, given.key), _staged(codec, facts.InputReceived(check_input_id(given.id), kind, schema, "msgpack", payload))


def json_input(codec: Codec, agent: str, key: str, kind: str, text: str | bytes, input_id: str) -> tuple[str, NewEvent]:
    """(stream, staged event) of an input given as JSON, with or without the app at hand.

    ``codec`` may be the runtime's own; then the fit of the JSON to its type is found out when the input is handled.
    Equal JSON values are equal inputs, whatever their spacing and key order.
    """
    stream = stream_name(agent, key)
    if kind:
        check_event_type(kind)
    value = _json_value(text, input_id)
    try:
        payload = msgspec.json.encode(value, order="sorted")
        if kind and codec.registry.get(kind) is not None:
            _, schema, payload = codec.encode(msgspec.convert(value, codec.class_of(kind)))
            return stream, _staged(codec, facts.InputReceived(check_input_id(input_id), kind, schema, "msgpack", payload))
    except (msgspec.MsgspecError, UnicodeError) as problem:
        raise InputRefused(f"the payload of input {input_id!r} does not fit {kind or 'JSON'}: {problem}: {_shown(text)}") from problem
    return stream, _staged(codec, facts.InputReceived(check_input_id(input_id), kind, 0, "json", payload))


def _json_value(text: str | bytes, input_id: str) -> Any:
    """The value of a JSON text; raises ``InputRefused`` for what is none, or holds a key twice."""
    try:
        value = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=_once)
    except _Twice as problem:
        raise InputRefused(f"the payload of input {input_id!r} holds the key {problem.args[0]!r} twice in one object: {_shown(text)}") from problem
    except (msgspec.MsgspecError, ValueError) as problem:
        raise InputRefused(f"the payload of input {input_id!r} is not JSON: {_fault(text, problem)}: {_shown(text)}") from problem
    return value


class _Twice(Exception):
    """A key that stands twice in one object."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice(next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1))
    return found


def _fault(text: str | bytes, problem: Exception) -> str:
    if not text.strip():
        return "it is empty"
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "it holds a lone surrogate escape, which is no character and has no UTF-8 form"
    except UnicodeDecodeError:
        return "it is not UTF-8"
    except ValueError:
        return "it ends too early" if "truncated" in str(problem) else str(problem)
    except RecursionError:
        return "it is nested too deep"
    return str(problem)


def _shown(text: str | bytes) -> str:
    front = text[:200]
    return repr(front.decode("utf-8", "backslashreplace") if isinstance(front, bytes) else front) + ("…" if len(text) > 200 else "")


def check_input_id(input_id: object) -> str:
    """``input_id`` itself; raises ``InputRefused`` unless it is a string of 1 to 512 bytes that is not blank."""
    if not isinstance(input_id, str) or not input_id.strip() or len(input_id.encode("utf-8", "surrogatepass")) > 512:
        raise InputRefused(f"Invalid input id {input_id!r:.80}: it must be a string of 1 to 512 UTF-8 bytes that is not blank; the same id is accepted once")
    return input_id


def _staged(codec: Codec, received: facts.InputReceived) -> NewEvent:
    event_id = input_event_id(received.input_id)
    return codec.stage(received, event_id=event_id, correlation=event_id)


def deliver(log: EventLog, inputs: Sequence[tuple[str, NewEvent]], ids: Sequence[str]) -> list[Receipt | InputRefused]:
    """Append inputs in one durable commit; the receipt may be given to the sender, for the input is on its stream (S-2.1).

    An input whose id was used before with the same payload is accepted again without a second event; with another payload
    its receipt is an ``InputRefused`` (S-2.2).
    """
    now = log.clock()
    outcomes = log.append_batch([AppendRequest((StreamAppend(stream, (event,), ANY, (Wake(TURNS, now, sooner=True),)),)) for stream, event in inputs])
    receipts: list[Receipt | InputRefused] = []
    for (stream, _), input_id, outcome in zip(inputs, ids, outcomes, strict=True):
        if isinstance(outcome, EventIdConflict):
            receipts.append(InputRefused(f"input id {input_id!r} was used on {stream} before with another payload; send a different input under a new id"))
        elif isinstance(outcome, LogError):
            raise outcome
        else:
            receipts.append(Receipt(stream, outcome.first_versions[0], outcome.positions[0][0], input_id, isinstance(outcome, Duplicate)))
    return receipts


def send(app: App, log: EventLog, *inputs: Input) -> list[Receipt]:
    """Deliver inputs; raises the first ``InputRefused`` after all the others are durable."""
    staged = [typed_input(app, each) for each in inputs]
    receipts = deliver(log, staged, [each.id for each in inputs])
    for receipt in receipts:
        if isinstance(receipt, InputRefused):
            raise receipt
    return [receipt for receipt in receipts if isinstance(receipt, Receipt)]
