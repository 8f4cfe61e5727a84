"""What a model says in a test: from a script, and written down either way."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs
import msgspec

from ..errors import TerminalAgentError
from ..models import ModelClient, ModelRequest, ModelResponse

Script: TypeAlias = Iterable[Any] | Mapping[str, Any] | Callable[[ModelRequest], Any]
"""Answers in order; or by prompt; or a function that is asked."""


class NothingScripted(TerminalAgentError):
    """The agent asked for something that the test has no answer to."""


def as_response(answer: Any) -> ModelResponse:
    """A text as it is, a ``ModelResponse`` as it is, anything else (an instance of the reply class) as its JSON.

    >>> as_response({"risk": 3}).text
    '{"risk":3}'
    """
    if isinstance(answer, ModelResponse):
        return answer
    if isinstance(answer, str):
        return ModelResponse(answer, "scripted")
    try:
        return ModelResponse(msgspec.json.encode(answer).decode(), "scripted")
    except (TypeError, ValueError) as problem:
        raise TypeError(
            f"{answer!r:.100} is no model's answer: give a text, a ModelResponse, an exception, or what can be written as JSON ({problem})"
        ) from problem


def prompt_of(request: ModelRequest) -> str:
    """The text of the request's last message."""
    return str(request.messages[-1].get("content", "")) if request.messages else ""


@attrs.frozen
class ModelCall:
    """A model was asked: one call that reached the provider, repetitions after a crash included."""

    request: ModelRequest
    #: The same for every repetition of one step (S-4.10).
    idempotency_key: str
    #: ``None`` when it failed.
    answer: ModelResponse | None = None
    error: BaseException | None = None

    @property
    def prompt(self) -> str:
        """The text of the request's last message."""
        return prompt_of(self.request)


class ScriptedModel:
    """A model client that answers from a script.

    A list is used up in order; a mapping is looked up by the whole prompt, else by the longest of its keys that occurs in
    it; a function is called with the request and may be async. An answer that is an exception is raised. A call repeated
    under one idempotency key (after a crash) gets its first answer again, so that a script fits whatever dies.
    """

    provider = "scripted"
    model = "scripted"

    def __init__(self, script: Script) -> None:
        self._script: Any = script if callable(script) or isinstance(script, Mapping) else list(script)
        self._given: dict[str, ModelResponse] = {}

    def complete(self, request: ModelRequest, *, idempotency_key: str) -> Awaitable[ModelResponse] | ModelResponse:
        """The scripted answer; raises the scripted exception, or ``NothingScripted``."""
        if idempotency_key in self._given:
            return self._given[idempotency_key]
        answer = self._next(request)
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        if inspect.isawaitable(answer):
            return self._awaited(answer, idempotency_key)
        return self._give(answer, idempotency_key)

    async def _awaited(self, answer: Awaitable[Any], key: str) -> ModelResponse:
        return self._give(await answer, key)

    def _give(self, answer: Any, key: str) -> ModelResponse:
        if isinstance(answer, BaseException):
            raise answer
        response = self._given[key] = as_response(answer)
        return response

    def _next(self, request: ModelRequest) -> Any:
        script, prompt = self._script, prompt_of(request)
        if isinstance(script, Mapping):
            found = prompt if prompt in script else max((known for known in script if known in prompt), key=len, default=None)
            if found is None:
                raise NothingScripted(f"no answer is scripted for the prompt {prompt!r:.200}; there are answers for: {', '.join(map(repr, script)) or 'none'}")
            return script[found]
        if isinstance(script, list):
            if not script:
                raise NothingScripted(f"the model's script is used up, and the agent asks once more: {prompt!r:.200}")
            return script.pop(0)
        return script


class RecordedModel:
    """A client with every call written down in ``calls``."""

    def __init__(self, inner: ModelClient, calls: list[ModelCall]) -> None:
        self.provider, self.model = inner.provider, inner.model
        self._inner, self._calls = inner, calls

    def complete(self, request: ModelRequest, *, idempotency_key: str) -> Awaitable[ModelResponse] | ModelResponse:
        """What the inner client says."""
        try:
            answer = self._inner.complete(request, idempotency_key=idempotency_key)
        except Exception as problem:
            self._calls.append(ModelCall(request, idempotency_key, error=problem))
            raise
        if isinstance(answer, Awaitable):
            return self._awaited(request, idempotency_key, answer)
        self._calls.append(ModelCall(request, idempotency_key, answer))
        return answer

    async def _awaited(self, request: ModelRequest, key: str, awaited: Awaitable[ModelResponse]) -> ModelResponse:
        try:
            answer = await awaited
        except BaseException as problem:
            self._calls.append(ModelCall(request, key, error=problem))
            raise
        self._calls.append(ModelCall(request, key, answer))
        return answer
