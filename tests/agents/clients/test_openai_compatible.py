"""The client against a real HTTP server on the loopback that speaks the wire format."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from intentlog.agents import ModelRequest, OpenAICompatible, ToolCall, Usage
from intentlog.agents.errors import ModelFailed, ModelRefused

SECRET = "sk-very-secret"
REQUEST = ModelRequest(
    [{"role": "user", "content": "hi"}], "openai", "m-1", [{"type": "function", "function": {"name": "pay"}}], {"temperature": 0}, {"type": "json_object"}
)


def answer(**message: Any) -> tuple[int, dict[str, str], bytes]:
    body = {"model": "m-1-2025", "choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    return 200, {}, json.dumps(body).encode()


class Provider(ThreadingHTTPServer):
    """Answers from a script; ``None`` in it hangs up."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.seen: list[tuple[str, dict[str, str], Any]] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(body)))
        given = self.server.script.pop(0)
        if given is None:
            self.close_connection = True
            return
        status, headers, content = given
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(provider: Provider, *script: Any, request: ModelRequest = REQUEST, **options: Any) -> tuple[Any, list[float]]:
    """The answer (or the error) and how long the client waited between its attempts."""
    provider.script = list(script)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def story() -> Any:
        client = OpenAICompatible(f"http://127.0.0.1:{provider.server_port}/v1/", sleep=sleep, **options)
        with contextlib.ExitStack() as stack:
            try:
                return await client.complete(request, idempotency_key="key-1")
            except (ModelFailed, ModelRefused) as problem:
                return problem
            finally:
                stack.close()
                await client.aclose()

    return asyncio.run(story()), waits


def test_a_request_is_sent_as_the_wire_format_has_it(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ask(provider, answer(content="yes"))
    ((path, headers, body),) = provider.seen
    assert "/v1/chat/completions" == path
    assert (f"Bearer {SECRET}", "key-1") == (headers["authorization"], headers["idempotency-key"])
    assert {"model": "m-1", "messages": REQUEST.messages, "temperature": 0, "tools": REQUEST.tools, "response_format": {"type": "json_object"}} == body


def test_no_key_no_header(provider, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ask(provider, answer(content="yes"))
    ask(provider, answer(content="yes"), api_key_env="")
    assert not any("authorization" in headers for _, headers, _ in provider.seen)


def test_an_answer_is_read_whole(provider):
    found, waits = ask(provider, answer(content="yes"))
    assert ("yes", "m-1-2025", Usage(7, 3), "stop", [], 1, []) == (found.text, found.model, found.usage, found.finish, found.tool_calls, found.attempts, waits)


def test_an_answer_of_tool_calls_alone_is_an_answer(provider):
    call = {"id": "c-1", "type": "function", "function": {"name": "pay", "arguments": '{"order": "o-1"}'}}
    found, _ = ask(provider, answer(content=None, tool_calls=[call]))
    assert ("", [ToolCall("c-1", "pay", '{"order": "o-1"}')]) == (found.text, found.tool_calls)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_what_may_heal_is_tried_again_with_back_off_under_the_same_key(provider, status):
    found, waits = ask(provider, (status, {}, b"later"), (status, {}, b"later"), answer(content="yes"))
    assert ("yes", 3, [0.25, 0.5]) == (found.text, found.attempts, waits)
    assert ["key-1"] * 3 == [headers["idempotency-key"] for _, headers, _ in provider.seen]
    assert provider.seen[0][2] == provider.seen[2][2]


@pytest.mark.parametrize("asked, waited", [("7", 7.0), ("0.1", 0.25), ("3600", 30.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.25), ("soon", 0.25), ("", 0.25)])
def test_retry_after_is_honoured_within_reason(provider, asked, waited):
    _, waits = ask(provider, (429, {"Retry-After": asked}, b""), answer(content="yes"))
    assert [waited] == waits


def test_a_lost_connection_is_tried_again(provider):
    found, waits = ask(provider, None, answer(content="yes"))
    assert ("yes", 2, 1) == (found.text, found.attempts, len(waits))


def test_a_provider_that_never_answers_fails_the_call_and_not_the_input(provider):
    found, waits = ask(provider, *[(503, {}, b"overloaded")] * 4)
    assert isinstance(found, ModelFailed)
    assert "HTTP 503: overloaded" in str(found)
    assert "4 attempts" in str(found)
    assert [0.25, 0.5, 1.0] == waits


def test_nobody_there_fails_the_call():
    async def story() -> None:
        client = OpenAICompatible("http://127.0.0.1:9", max_attempts=1)
        with pytest.raises(ModelFailed, match="ConnectError"):
            await client.complete(REQUEST, idempotency_key="k")
        await client.aclose()

    asyncio.run(story())


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 301])
def test_what_cannot_heal_is_refused_at_once(provider, status):
    found, waits = ask(provider, (status, {}, b"no"))
    assert isinstance(found, ModelRefused)
    assert f"HTTP {status}: no" in str(found)
    assert [] == waits


MALFORMED = [
    b"",
    b"<html>",
    b"\xff\xfe",
    b"[]",
    b"null",
    b'"text"',
    b'{"error": {"message": "overloaded"}}',
    b'{"choices": []}',
    b'{"choices": ["x"]}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": "x"}]}',
    b'{"choices": [{"message": {"content": 7}}]}',
    b'{"choices": [{"message": {"content": "x", "tool_calls": [{"id": "1"}]}}]}',
    b'{"choices": [{"message": {"content": "x", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": {}}}]}}]}',
    b'{"choices": [{"message": {"content": "x"}}], "usage": "many"}',
]


@pytest.mark.parametrize("content", MALFORMED)
def test_an_answer_that_is_none_is_refused_and_shown(provider, content):
    found, _ = ask(provider, (200, {}, content))
    assert isinstance(found, ModelRefused)
    assert "not a chat completion" in str(found)


def test_an_answer_in_parts_is_one_text(provider):
    found, _ = ask(provider, answer(content=[{"type": "text", "text": "yes, "}, {"type": "text", "text": "sir"}]))
    assert "yes, sir" == found.text


@pytest.mark.parametrize("status", [200, 401, 503])
def test_the_api_key_is_in_no_error_even_if_the_provider_sends_it_back(provider, monkeypatch, status):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    found, _ = ask(provider, *[(status, {}, f"bad key: {SECRET}".encode())] * 4)
    assert isinstance(found, ModelRefused | ModelFailed)
    assert SECRET not in str(found) + repr(found)
    assert "bad key" in str(found)


def test_one_client_serves_one_event_loop_after_the_other(provider):
    client = OpenAICompatible(f"http://127.0.0.1:{provider.server_port}", max_attempts=1)

    async def story() -> str:
        found = await client.complete(REQUEST, idempotency_key="k")
        await client.aclose()
        return found.text

    provider.script = [answer(content="one"), answer(content="two")]
    assert ["one", "two"] == [asyncio.run(story()) for _ in range(2)]
