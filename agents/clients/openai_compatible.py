"""A client for anything that speaks the OpenAI chat completions wire format.

Retries are the client's: 408, 409, 429, 5xx and lost connections are tried again with back-off, honouring
``Retry-After``; an error is never an answer (S-4.6). Every request carries the step's idempotency key (S-4.10). The API
key comes from an environment variable at the time of the call; it is never kept, logged or recorded.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import httpx

from ..errors import ModelFailed, TerminalAgentError
from ..models import ModelRequest, ModelResponse, ToolCall, Usage

_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class ModelRefused(TerminalAgentError):
    """The provider refused the request itself, or answered something that is no answer."""


@attrs.define(eq=False)
class OpenAICompatible:
    """Talks to ``base_url`` (the part before ``/chat/completions``)."""

    base_url: str
    model: str = "default"
    #: Name of the environment variable that holds the API key; empty for none.
    api_key_env: str = "OPENAI_API_KEY"
    #: Seconds one request may take.
    timeout: float = 60.0
    #: Requests sent for one answer, the first included.
    max_attempts: int = 4
    provider: str = "openai"
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _client: httpx.AsyncClient | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: ModelRequest, *, idempotency_key: str) -> ModelResponse:
        """One answer. Raises ``ModelFailed`` (the turn is tried later) or ``ModelRefused`` (it cannot succeed)."""
        problem = ""
        for attempt in range(1, self.max_attempts + 1):
            try:
                reply = await self._http().post(f"{self.base_url.rstrip('/')}/chat/completions", json=_body(request), headers=self._headers(idempotency_key))
            except httpx.TransportError as lost:
                problem, wait = f"{type(lost).__name__}: {lost}", None
            else:
                if reply.status_code == 200:
                    return _response(reply, attempt)
                problem, wait = f"HTTP {reply.status_code}: {reply.text[:500]}", reply.headers.get("retry-after")
                if reply.status_code not in _AGAIN:
                    raise ModelRefused(f"{self.base_url} refused the request: {problem}")
            if attempt < self.max_attempts:
                await self.sleep(_delay(attempt, wait))
        raise ModelFailed(f"{self.base_url} did not answer in {self.max_attempts} attempts; last: {problem}")

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections belong to the loop that opened them
            self._client, self._loop = httpx.AsyncClient(timeout=self.timeout), loop
        return self._client

    def _headers(self, idempotency_key: str) -> dict[str, str]:
        key = os.environ.get(self.api_key_env, "") if self.api_key_env else ""
        return {"Idempotency-Key": idempotency_key} | ({"Authorization": f"Bearer {key}"} if key else {})

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _delay(attempt: int, retry_after: str | None) -> float:
    """Seconds until the next attempt: doubling from 0.25, at least what the provider asks for, at most 30."""
    asked = float(retry_after) if retry_after and retry_after.replace(".", "", 1).isdigit() else 0.0
    return float(min(max(0.25 * 2 ** (attempt - 1), asked), 30.0))


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model, "messages": request.messages, **request.params}
    if request.tools:
        body["tools"] = request.tools
    if request.response_format is not None:
        body["response_format"] = request.response_format
    return body


def _response(reply: httpx.Response, attempt: int) -> ModelResponse:
    try:
        answer = reply.json()
        choice = answer["choices"][0]
        message = choice["message"]
        calls = [ToolCall(str(call["id"]), call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
        usage = answer.get("usage") or {}
        return ModelResponse(
            text=message.get("content") or "",
            model=str(answer.get("model", "")),
            tool_calls=calls,
            usage=Usage(int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))),
            finish=str(choice.get("finish_reason") or ""),
            attempts=attempt,
        )
    except (ValueError, LookupError, TypeError) as problem:
        raise ModelRefused(f"the answer is not a chat completion ({type(problem).__name__}: {problem}): {reply.text[:500]!r}") from problem
