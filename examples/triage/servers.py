"""The world around the triage agent, on loopback: a model in the OpenAI wire format, and a GitHub with a ledger.

``python -m examples.triage.servers --port-file servers.json`` serves both until it is ended. Answers are a pure function
of the request. Both keep a record, so that a test can count: whatever stands in a path before the part they know
(``/run-1/life-7/v1/chat/completions``) is kept as the caller's name.

* model:  ``POST …/v1/chat/completions``, ``GET /requests``
* GitHub: ``GET …/repos/<owner>/<name>/labels``, ``POST …/repos/<owner>/<name>/issues/<n>/labels|comments``,
  ``GET /ledger`` (idempotency key → effect), ``GET /requests``
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LABELS = ["bug", "documentation", "enhancement", "good first issue", "needs-triage", "question"]
SIGNS = {
    "bug": ("error", "crash", "fail", "wrong"),
    "documentation": ("readme", "spelling", "documentation", "typo"),
    "enhancement": ("new ", "add ", "change", "more emoji"),
    "good first issue": ("simple", "spelling"),
    "question": ("?", "how do", "maybe"),
}
LABELS_PATH = re.compile(r"(?P<caller>.*)/repos/(?P<repository>[^/]+/[^/]+)/labels")
EFFECT_PATH = re.compile(r"(?P<caller>.*)/repos/(?P<repository>[^/]+/[^/]+)/issues/(?P<number>\d+)/(?P<what>labels|comments)")
CHAT_PATH = re.compile(r"(?P<caller>.*)/v1/chat/completions")
Answer = tuple[int, Any]


class Record:
    """Every request that was served, in order, and what the effects among them came to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[dict[str, str]] = []
        self._ledger: dict[str, dict[str, Any]] = {}

    def note(self, caller: str, key: str, kind: str) -> None:
        """Write a request down."""
        with self._lock:
            self._requests.append({"caller": caller.strip("/"), "key": key, "kind": kind})

    def enter(self, key: str, effect: dict[str, Any]) -> dict[str, Any]:
        """The effect under ``key``: the first one sent, whatever is sent later."""
        with self._lock:
            return self._ledger.setdefault(key, effect)

    def requests(self) -> list[dict[str, str]]:
        """A copy, oldest first."""
        with self._lock:
            return list(self._requests)

    def ledger(self) -> dict[str, dict[str, Any]]:
        """A copy, by idempotency key."""
        with self._lock:
            return dict(self._ledger)


def model(record: Record, method: str, path: str, key: str, body: Any) -> Answer:
    """The model's answers."""
    if (method, path) == ("GET", "/requests"):
        return 200, record.requests()
    found = CHAT_PATH.fullmatch(path)
    if method != "POST" or not found:
        return 404, {"error": f"there is no {method} {path}"}
    record.note(found["caller"], key, "chat")
    answer = json.dumps(propose(body["messages"][-1]["content"]))
    return 200, {
        "id": f"chat-{hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]}",
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": sum(len(each["content"].split()) for each in body["messages"]), "completion_tokens": len(answer.split())},
    }


def propose(prompt: str) -> dict[str, Any]:
    """Labels whose signs stand in the prompt, two at most, and a sentence."""
    offered = re.search(r"^Labels offered: (.*)$", prompt, re.MULTILINE)
    subject = prompt.partition("Title: ")[2].lower()
    labels = [label for label in (offered[1].split(", ") if offered else []) if any(sign in subject for sign in SIGNS.get(label, ()))][:2]
    return {"labels": labels or ["needs-triage"], "comment": f"Thank you. I filed this under {' and '.join(labels) or 'needs-triage'}."}


def github(record: Record, method: str, path: str, key: str, body: Any) -> Answer:
    """GitHub's answers."""
    if method == "GET" and path in ("/requests", "/ledger"):
        return 200, record.requests() if path == "/requests" else record.ledger()
    if method == "GET" and (found := LABELS_PATH.fullmatch(path)):
        record.note(found["caller"], "", f"labels of {found['repository']}")
        return 200, LABELS
    if method != "POST" or not (found := EFFECT_PATH.fullmatch(path)):
        return 404, {"error": f"there is no {method} {path}"}
    if not key:
        return 400, {"error": "an effect needs an Idempotency-Key"}
    record.note(found["caller"], key, found["what"])
    effect = {"repository": found["repository"], "number": int(found["number"]), **body}
    if found["what"] == "comments":
        effect["id"] = f"comment-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    return 201, record.enter(key, effect)


def serve(answers: Callable[[Record, str, str, str, Any], Answer], port: int = 0, latency: float = 0.0) -> ThreadingHTTPServer:
    """A server on loopback that answers after ``latency`` seconds, already running in a thread; ``shutdown`` ends it."""
    record = Record()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer is one packet; in two, the second would wait for the first's acknowledgement
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, value = answers(record, self.command, unquote(self.path), self.headers.get("Idempotency-Key") or "", json.loads(body) if body else None)
            if latency and self.path not in ("/requests", "/ledger"):
                time.sleep(latency)
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = answer  # noqa: N815 - the names http.server looks for

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:  # the caller was killed; that is what the example is about
                pass

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


def main() -> None:
    """Serve both until stdin or the process ends."""
    parser = argparse.ArgumentParser(description="The model and the GitHub of the triage example, on loopback.")
    parser.add_argument("--port-file", type=Path, help="write {'model': URL, 'github': URL} to this file once both listen")
    parser.add_argument("--model-port", type=int, default=8101)
    parser.add_argument("--github-port", type=int, default=8102)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="how long an answer takes")
    given = parser.parse_args()
    ports = (0, 0) if given.port_file else (given.model_port, given.github_port)
    servers = []
    for name, answers, port in (("model", model, ports[0]), ("github", github, ports[1])):
        try:
            servers.append(serve(answers, port, given.latency_ms / 1000))
        except (OSError, OverflowError) as problem:  # taken, or no port at all
            parser.error(f"the {name} cannot listen on 127.0.0.1:{port}: {problem}. Choose another one: --{name}-port PORT")
    urls = {"model": f"http://127.0.0.1:{servers[0].server_port}/v1", "github": f"http://127.0.0.1:{servers[1].server_port}"}
    if given.port_file:
        written = given.port_file.with_suffix(".part")
        written.write_text(json.dumps(urls), "utf-8")
        os.replace(written, given.port_file)
    print(f"TRIAGE_MODEL_URL={urls['model']} TRIAGE_GITHUB_URL={urls['github']}", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print("ended")


if __name__ == "__main__":
    main()
