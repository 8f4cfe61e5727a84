"""A model call as data, and the one protocol a client meets.

The request is what the digest is made of, so every field that can change the answer is in it (S-4.3) and nothing else.
No client lives here; ``clients`` holds those that talk to providers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import attrs


@attrs.frozen
class ModelRequest:
    """Everything that can change the answer."""

    messages: list[dict[str, Any]]
    #: The provider's wire format or name, for example ``openai``; filled in by the app's client when empty.
    provider: str = ""
    model: str = ""
    tools: list[dict[str, Any]] = attrs.field(factory=list)
    params: dict[str, Any] = attrs.field(factory=dict)
    response_format: dict[str, Any] | None = None
    tenant: str = ""


@attrs.frozen
class Usage:
    """Tokens, as the provider counted them."""

    input_tokens: int = 0
    output_tokens: int = 0


@attrs.frozen
class ToolCall:
    """A tool the model asks for; ``arguments`` is the provider's JSON text."""

    id: str
    name: str
    arguments: str


@attrs.frozen
class ModelResponse:
    """An answer, whole (S-4.6)."""

    text: str
    model: str = ""
    tool_calls: list[ToolCall] = attrs.field(factory=list)
    usage: Usage = Usage()
    finish: str = ""
    #: Requests sent until it came, the answered one included.
    attempts: int = 1


class ModelClient(Protocol):
    """Talks to one provider. ``complete`` retries by its own policy and raises ``ModelFailed`` at the end of it.

    A client that has the answer at hand (a script, a rule, a cache) may return it instead of an awaitable; it must not
    block.
    """

    #: Fills ``ModelRequest.provider``.
    provider: str
    #: Fills ``ModelRequest.model``.
    model: str

    def complete(self, request: ModelRequest, *, idempotency_key: str) -> Awaitable[ModelResponse] | ModelResponse: ...


def as_request(prompt: str | Sequence[Mapping[str, Any]] | ModelRequest, **changes: Any) -> ModelRequest:
    """A request from a prompt, a list of messages or a request; ``changes`` replace its fields.

    >>> as_request("hello").messages
    [{'role': 'user', 'content': 'hello'}]
    """
    if isinstance(prompt, ModelRequest):
        return attrs.evolve(prompt, **changes) if changes else prompt
    messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(message) for message in prompt]
    return ModelRequest(**{"messages": messages, **changes})


def idempotency_key(stream: str, seq: int, step: int, digest: bytes) -> str:
    """The key a provider request carries, the same for every repetition of one step (S-4.10)."""
    return hashlib.sha256(f"{stream}|{seq}|{step}|{digest.hex()}".encode()).hexdigest()[:40]
