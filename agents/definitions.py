"""What an agent's code is written in terms of: its codec, tools, model and events. Pure look-ups, resolved once an app."""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from ..eventlog import errors as log_errors
from ..eventlog import wire
from ..eventlog.codec import Codec
from ..eventlog.errors import LogError, Unencodable
from . import errors, facts
from .budgets import Price
from .defining import Agent
from .errors import DefinitionError, InputRefused
from .models import ModelRequest, ModelResponse, as_request
from .tools import Tool, ToolSet, bind_arguments

_FACTS: Final = frozenset(facts.FACTS)


@attrs.frozen(eq=False)
class Definitions:
    """Everything a turn of one agent looks up."""

    agent: Agent
    codec: Codec
    tools: ToolSet
    #: Names that a request is completed with; empty when the app has no model client.
    provider: str = ""
    model: str = ""
    #: Prices by model.
    prices: Mapping[str, Price] = attrs.field(factory=dict)
    #: Names of all agents of the app.
    agents: frozenset[str] = frozenset()
    #: With which aggregates of the eventsourcing library are written; ``None``: as its applications do by default.
    mapper: Any = None
    #: Readers of other aggregates, by class; filled as they are met.
    readers: dict[Any, Any] = attrs.field(factory=dict)

    def payload(self, received: facts.InputReceived) -> Any:
        """The input as the agent's code gets it; raises ``InputRefused`` when it fits none of the declared types."""
        try:
            value = self._read(received)
        except (LogError, msgspec.MsgspecError) as problem:
            raise InputRefused(f"input {received.input_id!r} ({received.type or 'a plain value'}) cannot be read: {problem}") from problem
        if type(value) in self.agent.inputs:
            return value
        wanted = tuple(kind for kind in self.agent.inputs if isinstance(kind, type))
        if wanted and Any not in self.agent.inputs and not isinstance(value, wanted):
            names = ", ".join(getattr(kind, "__event_type__", kind.__name__) for kind in wanted)
            raise InputRefused(f"agent {self.agent.name} takes {names}; input {received.input_id!r} is {received.type or type(value).__name__}")
        return value

    def _read(self, received: facts.InputReceived) -> Any:
        if received.format == "msgpack":
            return self.codec.decode(received.type, received.schema, received.payload) if received.type else self.codec.decode_value(received.payload, Any)
        value = msgspec.json.decode(received.payload)
        return msgspec.convert(value, self.codec.class_of(received.type)) if received.type else value

    def received(self, input_id: str, payload: Any, reply_to: str = "") -> facts.InputReceived:
        """A payload as an input: an event by its registered type, anything else as a plain value."""
        if hasattr(type(payload), "__event_type__"):
            kind, schema, encoded = self.codec.encode(payload)
        else:
            kind, schema, encoded = "", 0, self.codec.encode_value(payload, Any)
        return facts.InputReceived(input_id, kind, schema, "msgpack", encoded, reply_to)

    def model_request(self, prompt: str | Sequence[Mapping[str, Any]] | ModelRequest, reply: Any, changes: Mapping[str, Any]) -> ModelRequest:
        """A request from a prompt, messages or a request, with provider, model and reply schema filled in."""
        if type(prompt) is str and reply is None and not changes:
            return ModelRequest([{"role": "user", "content": prompt}], self.provider, self.model)
        defaults: dict[str, Any] = {"provider": self.provider, "model": self.model}
        if isinstance(prompt, ModelRequest):
            defaults = {name: value for name, value in defaults.items() if not getattr(prompt, name)}
        if reply is not None and "response_format" not in changes and getattr(prompt, "response_format", None) is None:
            schema = msgspec.json.schema(reply)
            defaults["response_format"] = {"type": "json_schema", "json_schema": {"name": getattr(reply, "__name__", "reply"), "schema": schema}}
        return as_request(prompt, **{**defaults, **changes})

    def model_digest(self, request: ModelRequest) -> tuple[bytes, bytes]:
        """SHA-256 over the canonical bytes of every field that can change the answer (S-4.3), and those bytes."""
        try:
            encoded = _plainly(request) or self.codec.encode_value(request, ModelRequest)
        except Unencodable as problem:
            raise DefinitionError(f"the model request cannot be recorded: {problem}") from problem
        return hashlib.sha256(encoded).digest(), encoded

    def read_reply(self, response: ModelResponse, reply: Any) -> Any:
        """The answer's JSON text as a ``reply``; raises ``InputRefused`` naming the field that does not fit."""
        try:
            return msgspec.json.decode(response.text, type=reply)
        except msgspec.MsgspecError as problem:
            raise InputRefused(f"the model's answer does not fit {getattr(reply, '__name__', reply)}: {problem}: {response.text!r:.200}") from problem

    def cost_of(self, request: ModelRequest, response: ModelResponse) -> int:
        """What an answer cost, in 10⁻¹² of the prices' currency; 0 when neither the model asked for nor the one that answered has a price."""
        if not self.prices:
            return 0
        price = self.prices.get(request.model) or self.prices.get(response.model)
        return price.of(response.usage) if price is not None else 0

    def bind(self, used: Tool, args: dict[str, Any]) -> dict[str, Any]:
        """Python arguments from the plain ones."""
        return bind_arguments(self.codec, used, args)

    def value(self, plain: Any, returns: Any) -> Any:
        """A recorded value as the annotated return type."""
        if returns is Any or returns is None or returns is type(None):
            return plain
        return self.codec.decode_value(self.codec.encode_value(plain, Any), returns)

    def exception(self, failure: facts.Failure) -> BaseException:
        """The recorded exception, of the same type when it is a built-in one or ours, with the same text, live and replayed."""
        kind = next((getattr(module, failure.type) for module in (builtins, errors, log_errors) if hasattr(module, failure.type)), None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, StopIteration | StopAsyncIteration):
            made = _raised_as(kind, failure.message)
            if made is not None and str(made) == failure.message:
                return made
        return ReadFailed(failure.type, failure.message)

    def check_domain_event(self, event: object) -> None:
        """Raise ``DefinitionError`` unless ``event`` is of a registered class that is not one of the runtime's."""
        if type(event) in _FACTS or not self.codec.knows(type(event)):
            raise DefinitionError(
                f"ctx.emit({event!r:.80}): not an event of this app. Decorate its class with @event(name, version=n) and list it in "
                "App(events=[…]) if it lives in another module."
            )


def _raised_as(kind: type[Exception], message: str) -> Exception | None:
    try:
        if issubclass(kind, KeyError):  # its text is the repr of the key
            return kind(ast.literal_eval(message))
        return kind(message) if message else kind()
    except (TypeError, ValueError, SyntaxError, MemoryError, RecursionError):  # it takes more than a text
        return None


_LEAVES: Final = frozenset({str, int, float, bool, bytes, type(None)})


def _is_plain(value: Any) -> bool:
    """Whether ``value`` is made of exact built-in types that MessagePack holds by itself."""
    kind = type(value)
    if kind in _LEAVES:
        return True
    if kind is dict:
        for name, each in value.items():  # noqa: SIM110 - a generator costs more than what it would look at
            if type(name) is not str or not (type(each) in _LEAVES or _is_plain(each)):
                return False
        return True
    return kind is list and all(map(_is_plain, value))


def _plainly(request: ModelRequest) -> bytes | None:
    """The canonical bytes of a request, the quick way: the same as ``encode_value`` gives, or ``None`` when that must decide."""
    texts = type(request.provider) is str and type(request.model) is str and type(request.tenant) is str
    if not (texts and _is_plain(request.messages) and _is_plain(request.tools) and _is_plain(request.params) and _is_plain(request.response_format)):
        return None
    try:
        return wire.write(request)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return None


class ReadFailed(Exception):
    """A read-only tool raised an exception that is not a built-in one; ``args`` are its type's name and its text."""

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"
