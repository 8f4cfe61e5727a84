"""A client for anything that speaks the OpenAI chat completions wire format.

Retries are the client's: 408, 409, 429, 5xx and lost connections are tried again with back-off, honouring
``Retry-After``; an error is never an answer (S-4.6). Every request carries the step's idempotency key (S-4.10). The API
key comes from an environment variable at the time of the call; it is never kept, logged or recorded.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import httpx

from ..errors import ModelFailed, ModelRefused
from ..models import ModelRequest, ModelResponse, ToolCall, Usage

_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


_USER_INFO: Final = re.compile(r"//[^/@]*@")


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
                    return self._response(reply, attempt)
                problem, wait = f"HTTP {reply.status_code}: {self._said(reply)}", reply.headers.get("retry-after")
                if reply.status_code not in _AGAIN:
                    raise ModelRefused(f"{self._where()} refused the request: {problem}")
            if attempt < self.max_attempts:
                await self.sleep(_delay(attempt, wait))
        raise ModelFailed(f"{self._where()} did not answer in {self.max_attempts} attempts; last: {problem}")

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections belong to the loop that opened them
            self._client, self._loop = httpx.AsyncClient(timeout=self.timeout), loop
        return self._client

    def _headers(self, idempotency_key: str) -> dict[str, str]:
        key = self._key()
        return {"Idempotency-Key": idempotency_key} | ({"Authorization": f"Bearer {key}"} if key else {})

    def _key(self) -> str:
        return os.environ.get(self.api_key_env, "") if self.api_key_env else ""

    def _said(self, reply: httpx.Response) -> str:
        """The beginning of what the provider said."""
        return self._masked(reply.text)[:500]

    def _masked(self, text: str) -> str:
        """Without the key: some providers send it back, and errors go into the log."""
        key = self._key()
        return text.replace(key, "***") if key else text

    def _where(self) -> str:
        return _USER_INFO.sub("//***@", self.base_url)

    def _response(self, reply: httpx.Response, attempt: int) -> ModelResponse:
        try:
            return _read(reply.json(), attempt)
        except (ValueError, LookupError, TypeError, AttributeError) as problem:
            # Not chained: the decoder's own error holds the whole text.
            fault = self._masked(f"{type(problem).__name__}: {problem}")
            raise ModelRefused(f"the answer is not a chat completion ({fault}): {self._said(reply)!r}") from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _delay(attempt: int, retry_after: str | None) -> float:
    """Seconds until the next attempt: doubling from 0.25, at least what the provider asks for, at most 30."""
    asked = float(retry_after) if retry_after and retry_after.isascii() and retry_after.replace(".", "", 1).isdigit() else 0.0
    return float(min(max(0.25 * 2 ** (attempt - 1), asked), 30.0))


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"model": request.model, "messages": request.messages, **request.params}
    if request.tools:
        body["tools"] = request.tools
    if request.response_format is not None:
        body["response_format"] = request.response_format
    return body


def _read(answer: Any, attempt: int) -> ModelResponse:
    choice = answer["choices"][0]
    message = choice["message"]
    usage = answer.get("usage") or {}
    return ModelResponse(
        text=_text(message.get("content")),
        model=str(answer.get("model", "")),
        tool_calls=[
            ToolCall(str(call["id"]), _string(call["function"]["name"]), _string(call["function"]["arguments"])) for call in message.get("tool_calls") or ()
        ],
        usage=Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)),
        finish=str(choice.get("finish_reason") or ""),
        attempts=attempt,
    )


def _text(content: Any) -> str:
    """A message's content: absent beside tool calls, a text, or a list of parts of which some are texts."""
    if isinstance(content, list):
        return "".join(_string(part["text"]) for part in content if part.get("type") == "text")
    return _string(content or "")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not a text")
    return value
