"""Who listens to an effector: log lines and spans."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from intentlog.agents import ToolSet, facts, tool
from intentlog.agents.committer import Committer
from intentlog.effector import Effector, EffectorSettings
from intentlog.effector.logs import LogLines, logger
from intentlog.effector.metrics import Metrics
from intentlog.effector.phases import Outcome
from intentlog.effector.tracing import Spans, activation_span_id
from intentlog.effector.watching import Everyone, Watching
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import ANY
from tests.effector.test_effector import CODEC, Outside
from tests.effector.test_phases import pending


def serve(outside: Outside, watching: Watching, tools: ToolSet | None = None, on_error: Any = lambda doing, problem: None) -> None:
    async def run() -> None:
        committer = Committer(outside.log)
        settings = EffectorSettings(poll=0.005)
        effector = Effector(CODEC, tools or outside.tools, outside.log, owner="e", committer=committer, settings=settings, watching=watching, on_error=on_error)
        running = asyncio.create_task(effector.run())
        async with asyncio.timeout(10):
            while not await effector.idle():  # noqa: ASYNC110 - it is on the log
                await asyncio.sleep(0.005)
        effector.stop()
        await running
        committer.close()

    asyncio.run(run())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_line_about_an_intent_names_it_and_holds_nothing_that_was_said_to_or_by_its_tool():
    def fail() -> Any:
        raise ValueError("password=s3cret")

    with Outside() as outside:
        outside.do = {"s3cret argument": lambda: "s3cret result", "x": fail}
        outside.stage("x", "s3cret argument")
        outside.stage("late", ttl=-SECOND)
        out = io.StringIO()
        serve(outside, LogLines(logger("debug", out, replica="r")))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    about = [line for line in lines if line["event"] in ("attempted", "called", "settled")]
    assert 7 == len(about)
    for line in about:
        assert ("a-k", "k", "work", "r") == (line["stream"], line["key"], line["tool"], line["replica"])
        assert {"intent_id", "attempt", "timestamp", "level"} <= line.keys()
    assert [("ERROR", "ValueError", 1), ("OK", None, 1), ("EXPIRED", "Expired", 0)] == [
        (line["status"], line.get("failure"), line["attempt"]) for line in about if line["event"] == "settled"
    ]
    told = out.getvalue().replace('"intent_id": "s3cret argument"', "")
    assert "s3cret" not in told


def test_a_terminal_gets_names_and_values_and_the_level_is_heeded():
    out = Terminal()
    log = logger("warning", out)
    log.info("unheard")
    log.warning("heard", url="postgresql://me:hunter2@db/log", text="a b")
    (line,) = out.getvalue().splitlines()
    assert line.startswith("timestamp=")
    assert 'level=warning event=heard url=postgresql://me:***@db/log text="a b"' in line


def test_the_same_trouble_is_told_once_and_its_text_only_where_it_is_ours():
    out = io.StringIO()
    lines = LogLines(logger("info", out))
    for _ in range(5):
        lines.trouble("reading", LogUnavailable("postgresql://me:hunter2@db is gone"))
    lines.trouble("calling", ValueError("s3cret"))
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert ("reading", "LogUnavailable", "postgresql://me:***@db is gone") == (first["doing"], first["error"], first["text"])
    assert ("calling", "ValueError", False) == (second["doing"], second["error"], "text" in second)


def test_a_trouble_about_an_intent_names_it_and_is_told_once():
    out = io.StringIO()
    lines = LogLines(logger("info", out))
    for name in ("i-1", "i-1", "i-2"):
        about = pending("work", attempts=2)
        about.intent = facts.IntentStaged(name, 3, 5, "work", {}, b"", 100)
        lines.hindered(about, "recording intent.settled on a-k", LogUnavailable("gone"))
        lines.trouble("recording intent.settled on a-k", LogUnavailable("gone"))
    told = [json.loads(line) for line in out.getvalue().splitlines()]
    assert ["i-1", "i-2"] == [line["intent_id"] for line in told]
    for line in told:
        assert ("trouble", "a-k", "k", "work", 2, "gone") == (line["event"], line["stream"], line["key"], line["tool"], line["attempt"], line["text"])


def test_a_line_about_what_this_effector_did_names_its_own_attempt_and_not_a_later_one_of_another():
    out = io.StringIO()
    mine = pending("work", attempts=2)
    mine.own_attempt = 1
    LogLines(logger("info", out)).refused(mine, Outcome("OK"))
    assert 1 == json.loads(out.getvalue())["attempt"]


def test_a_store_that_is_down_when_an_outcome_is_known_is_told_of_with_the_intent(monkeypatch):
    with Outside() as outside:
        failures, append = [2], outside.log.append_batch

        def unreachable(requests: Any) -> Any:
            if any(event.type == "intent.settled" for request in requests for part in request.parts for event in part.events) and failures[0]:
                failures[0] -= 1
                raise LogUnavailable("no route")
            return append(requests)

        monkeypatch.setattr(outside.log, "append_batch", unreachable)
        monkeypatch.setattr("intentlog.agents.committer._TRIES", 1)
        outside.stage("x")
        out = io.StringIO()
        lines = LogLines(logger("info", out))
        serve(outside, lines, on_error=lines.trouble)
    (line,) = [each for each in map(json.loads, out.getvalue().splitlines()) if each["event"] == "trouble"]
    assert ("recording intent.settled on a-k", "x", "k", "work", 1) == (line["doing"], line["intent_id"], line["key"], line["tool"], line["attempt"])


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def span_of(exporter: InMemorySpanExporter, intent_id: str) -> Any:
    (found,) = [each for each in exporter.get_finished_spans() if (each.attributes or {}).get("intentlog.intent_id") == intent_id]
    return found


def test_a_span_an_attempt_in_the_trace_of_the_input_that_began_it_all_and_the_tool_inside(exporter, provider):
    from intentlog.eventlog.versions import ANY

    tracer = provider.get_tracer("the tool's own")

    def pay(name: str) -> str:
        with tracer.start_as_current_span(f"POST /{name}"):
            return name

    tools = ToolSet([tool(side_effect=True)(pay)])
    correlation = bytes(range(16))
    with Outside() as outside:
        for name, ttl in (("x", SECOND * 60), ("late", -SECOND)):
            fact = facts.IntentStaged(name, 3, 1, "pay", {"name": name}, b"", system_clock() + ttl)
            outside.log.append("a-k", [CODEC.stage(fact, event_id=outside.ids(), correlation=correlation)], ANY)
        serve(outside, Everyone([Spans(provider)]), tools)
    spans: dict[str, Any] = {each.name: each for each in exporter.get_finished_spans()}
    paid, expired, inside = span_of(exporter, "x"), span_of(exporter, "late"), spans["POST /x"]
    for each in (paid, expired, inside):
        assert int.from_bytes(correlation, "big") == each.context.trace_id
    assert activation_span_id("a-k", 3) == paid.parent.span_id == expired.parent.span_id == paid.links[0].context.span_id
    assert paid.context.span_id == inside.parent.span_id
    assert ("OK", True, "EXPIRED", False) == (
        paid.attributes["intentlog.status"],
        paid.status.is_unset,
        expired.attributes["intentlog.status"],
        expired.status.is_ok or expired.status.is_unset,
    )
    assert paid.start_time < inside.start_time < inside.end_time < paid.end_time
    assert all("s3cret" not in str(value) for each in spans.values() for value in (each.attributes or {}).values())


def test_a_stream_that_is_left_alone_is_told_of_once_with_where_and_why_and_counted():
    out = io.StringIO()
    lines, metrics = LogLines(logger(file=out)), Metrics(["work"], system_clock)
    with Outside() as outside:
        outside.log.append("a-bad", [NewEvent(outside.ids(), "intent.staged", 2, b"of a later day")], ANY)
        serve(outside, Everyone([lines, metrics]), on_error=lines.trouble)
        serve(outside, Everyone([lines]), on_error=lines.trouble)
    (told,) = [json.loads(each) for each in out.getvalue().splitlines()]
    assert ("stream left alone", "error", "a-bad", "bad") == (told["event"], told["level"], told["stream"], told["key"])
    assert "a-bad version 0: intent.staged was written under schema version 2" in told["text"]
    assert 1.0 == metrics.registry.get_sample_value("intentlog_effector_blocked_streams")
