"""Health and metrics of real replicas, and what they say while something is wrong."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from intentlog.effector.health import HealthServer
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import ANY
from tests.effector.service.replicas import World, eventually

UNMEASURED = """
import sys
sys.modules["prometheus_client"] = None
from intentlog.effector.replica import serve
sys.exit(serve({"registry": "tools:TOOLS", "log": sys.argv[1]}, until_idle=True))
"""

HEAVY = """
import time
from intentlog.agents.tools import ToolSet, tool

@tool(side_effect=True)
async def heavy(name: str) -> str:
    time.sleep(12)
    return name

TOOLS = ToolSet([heavy])
"""


def test_a_replica_at_work_is_live_and_ready_and_counts_what_it_does(world: World):
    replica = world.start()
    assert (200, 200, 404) == tuple(replica.get(path)[0] for path in ("/healthz", "/readyz", "/nothing"))
    health = replica.health()
    assert (True, True, False) == (health["live"], health["ready"], health["stopping"])
    assert {"tail", "renewals", "checkpoint", "lanes", "appends", "news", "health", "loop"} <= set(health["parts"])
    assert {"running"} == {each["state"] for each in health["parts"].values()}
    for n in range(3):
        world.stage(f"k{n}")
    world.stage("gone", "no such tool")
    world.stage("held", "gated", name="x")
    eventually(lambda: replica.metric("open_intents") == 1)
    eventually(lambda: replica.metric("keys_in_flight") == 1)
    assert replica.metric("oldest_intent_seconds") > 0
    world.open_gate()
    eventually(lambda: replica.metric("open_intents") == 0)
    eventually(lambda: replica.metric("handed_back_total") >= 5)
    assert (3, 1, 1) == tuple(
        replica.metric(f'outcomes_total{{status="{status}",tool="{tool}"}}') for status, tool in (("OK", "work"), ("REJECTED", "(unknown)"), ("OK", "gated"))
    )
    assert (3, 3, 0) == (
        replica.metric('tool_seconds_count{tool="work"}'),
        replica.metric('settle_seconds_count{tool="work"}'),
        replica.metric("oldest_intent_seconds"),
    )
    assert (1, 0) == (replica.metric('part_up{part="tail"}'), replica.metric('part_restarts{part="tail"}'))


def test_a_tool_that_holds_up_the_event_loop_is_seen_from_outside_of_it(local: World):
    """Nothing can hang silently: the loop cannot turn, and health says so, with the place."""
    local.stage("k", "stone", name="x")
    replica = local.start()
    eventually(local.ledger)
    eventually(lambda: replica.get("/healthz")[0] == 503)
    assert "stuck" == replica.health()["parts"]["loop"]["state"]
    (line,) = eventually(lambda: [each for each in replica.lines("part stuck") if each["part"] == "loop"])
    assert any(place.startswith("stone:") for place in line["where"])


def test_a_loop_that_goes_on_by_itself_is_not_called_restarted(local: World):
    (local.folder / "heavy.py").write_text(HEAVY)
    local.stage("k", "heavy", name="x")
    replica = local.start(registry="heavy:TOOLS")
    (line,) = eventually(lambda: replica.lines("loop goes on"))
    assert line["stood_seconds"] > 10
    assert [] == replica.lines("part restarted")
    eventually(lambda: replica.get("/readyz")[0] == 200)
    assert 0 == replica.health()["parts"]["loop"]["restarts"]


def test_a_port_that_is_taken_is_told_and_nothing_runs(local: World):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        replica = local.start("--health-port", str(taken.getsockname()[1]))
        assert 3 == replica.process.wait(30)
    (line,) = replica.lines()
    assert ("could not serve", "error") == (line["event"], line["level"])
    assert "Give another --health-port" in line["text"]
    assert 1 == len(replica.errors.read_text().splitlines())


def test_a_port_that_is_given_is_the_one_that_answers(local: World):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert f"http://127.0.0.1:{port}" == local.start(EFFECTOR_HEALTH_PORT=str(port)).url


def test_without_the_extra_it_works_unmeasured_and_says_so(local: World):
    intent = local.stage("k")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNMEASURED, local.url], cwd=local.folder, capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert (0, ["OK"]) == (done.returncode, local.statuses(intent)), done.stderr
    assert "pip install 'intentlog[metrics]'" in done.stderr


@pytest.fixture
def server():
    made = HealthServer(lambda: {"live": True, "ready": False})
    yield made
    made.stop()


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as problem:
        return problem.code, problem.read()


def test_live_and_ready_are_two_questions_and_metrics_may_be_missing(server):
    url = server.start("127.0.0.1", 0)
    assert (200, {"live": True, "ready": False}) == (get(url + "/healthz")[0], json.loads(get(url + "/healthz")[1]))
    assert (503, 501) == (get(url + "/readyz?full=1")[0], get(url + "/metrics")[0])


def test_a_server_is_begun_again_where_it_was(server):
    url = server.start("127.0.0.1", 0)
    port = int(url.rpartition(":")[2])
    server.stop()
    eventually(lambda: not server.alive)
    assert url == server.start("127.0.0.1", port)
    assert 200 == get(url + "/healthz")[0]


def test_a_client_that_says_nothing_keeps_nobody_else_waiting(server):
    url = server.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))):
        assert 200 == get(url + "/healthz")[0]


def hang_up(port: int, sent: bytes) -> None:
    """Send ``sent`` and reset the connection."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(sent)


def test_a_client_that_hangs_up_leaves_no_traceback_among_the_lines(capfd):
    ended: list[BaseException | None] = []
    size = 50_000_000
    server = HealthServer(lambda: {"live": True, "ready": True, "much": "x" * size}, on_error=lambda doing, problem: ended.append(problem))
    port = int(server.start("127.0.0.1", 0).rpartition(":")[2])
    threads = threading.active_count()
    for sent in (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHo"):
        hang_up(port, sent)
    assert 200 == get(f"http://127.0.0.1:{port}/healthz")[0]
    eventually(lambda: threading.active_count() <= threads)
    server.stop()
    assert ("", "") == tuple(capfd.readouterr())
    assert [] == ended


def test_a_page_that_cannot_be_made_is_told_and_the_next_one_is_answered(capfd):
    heard: list[tuple[str, str]] = []
    asked = iter(range(2))

    def report() -> dict[str, object]:
        if next(asked) == 0:
            raise ValueError("no report")
        return {"live": True, "ready": True}

    server = HealthServer(report, on_error=lambda doing, problem: heard.append((doing, repr(problem))))
    url = server.start("127.0.0.1", 0)
    with pytest.raises(OSError, match="closed"):
        get(url + "/healthz")
    assert 200 == get(url + "/healthz")[0]
    server.stop()
    assert [(f"answering at {url.rpartition(':')[2]}", "ValueError('no report')")] == heard
    assert "" == capfd.readouterr().err


def test_health_names_a_stream_that_stands_still_and_its_exit_code_claims_no_success(world: World):
    bad = NewEvent(world.ids(), "intent.staged", 2, b"of a later day")
    world.log.append("a-bad", [bad], ANY)
    intent = world.stage("good")
    replica = world.start()
    eventually(lambda: world.statuses(intent) == ["OK"])
    report = replica.health()
    assert (1, ["a-bad"], True) == (report["blocked_streams"], list(report["blocked"]), report["ready"])
    assert "a-bad version 0: intent.staged was written under schema version 2" in report["blocked"]["a-bad"]
    assert (1.0, 1) == (replica.metric("blocked_streams"), len(replica.lines("stream left alone")))
    assert 0 == replica.end()
    again = world.start(EFFECTOR_UNTIL_IDLE="1")
    assert 3 == again.process.wait(30)
    assert 1 == len(again.lines("stream left alone"))  # no checkpoint has passed it
