"""Every question gets to the surface, in the order of its key, whatever the surface, another question or another replica does."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.dead_letters import redrive_approval
from intentlog.agents.errors import InputRefused
from intentlog.effector.approvals import Publication, parse_webhook
from intentlog.effector.approvals.publishing import PART, Publisher
from intentlog.effector.approvals.webhook import Webhook
from intentlog.effector.logs import logger
from intentlog.effector.supervision import Supervisor, Watchdog
from intentlog.effector.watching import Watching
from intentlog.eventlog.errors import LogUnavailable
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.effector.approvals.surface import CODEC, NEW_ID, RING, Delivery, Surface, ask, decide


@pytest.fixture
def log() -> Iterator[EventLog]:
    opened = open_log("memory://")
    yield opened
    opened.close()


class Health(Watching):
    """What the supervisor would hear."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def beat(self, part: str) -> None:
        self.heard.append("beat")

    def failed(self, part: str, problem: BaseException) -> None:
        self.heard.append(str(problem))


def publisher(log: EventLog, surface: Surface, owner: str = "r0", **named: Any) -> Publisher:
    sink = Webhook(parse_webhook(surface.url), RING, log.clock)
    return Publisher(log, CODEC, sink, owner=owner, poll=0.02, patience=lambda failures: 0.01, **named)


@asynccontextmanager
async def running(made: Publisher) -> AsyncIterator[Publisher]:
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(holds: Callable[[], Any], made: Publisher | None = None, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds() or (made is not None and not await made.idle()):  # noqa: ASYNC110 - the other side is a thread
            await asyncio.sleep(0.01)


def serve(log: EventLog, surface: Surface, **named: Any) -> Publisher:
    """Until everything is published."""

    async def run() -> Publisher:
        async with running(publisher(log, surface, **named)) as made:
            await eventually(lambda: True, made)
            return made

    return asyncio.run(run())


def test_every_question_is_published_once_in_the_order_of_its_key_and_the_cursor_is_kept(log):
    for number in range(3):
        for key in ("ann", "bob"):
            ask(log, key, number)
    with Surface() as surface:
        serve(log, surface)
        for key in ("ann", "bob"):
            assert [f"approval-{n}-0" for n in range(3)] == [name for stream, name in surface.asked() if stream == f"desk-{key}"]
        assert (6, log.last_position()) == (len(surface.came), log.checkpoints.load(PART))
        serve(log, surface)
        assert 6 == len(surface.came)
        ask(log, "eve")
        serve(log, surface)
        assert ("desk-eve", "approval-0-0") == surface.asked()[-1]


def test_what_nobody_could_answer_any_more_is_not_published(log):
    ask(log, "late", expires_in=0)
    ask(log, "done")
    decide(log, "done")
    ask(log, "open")
    with Surface() as surface:
        serve(log, surface)
    assert [("desk-open", "approval-0-0")] == surface.asked()


def test_a_surface_that_is_down_is_asked_again_and_again_and_health_says_so_meanwhile(log):
    ask(log, "ann")
    ask(log, "ann", 1)
    up, health = threading.Event(), Health()

    async def run(surface: Surface) -> dict[str, Any]:
        async with running(publisher(log, surface, watching=health)) as made:
            await eventually(lambda: len(surface.came) > 10)
            told = made.report()["approvals"]
            up.set()
            await eventually(lambda: True, made)
            assert (None, 0, 2) == (made.report()["approvals"]["last_error"], len(made._failing), made.published)
            return dict(told)

    with Surface(lambda delivery: 200 if up.is_set() else 503) as surface:
        told = asyncio.run(run(surface))
    assert (True, 1, 0, 2) == (told["leading"], told["retrying"], told["published"], told["waiting"])
    assert f"webhook+http://127.0.0.1:{surface.port}/… answered 503" == told["last_error"]
    assert told["last_error"] in health.heard
    assert "beat" == health.heard[-1]
    assert ["approval-0-0", "approval-1-0"] == list(dict.fromkeys(name for _, name in surface.asked()))
    assert 1 == len({each.id for each in surface.came if each.said["approval"] == "approval-0-0"})


def test_a_poisoned_question_is_given_up_and_the_others_go_on(log):
    ask(log, "ann", 0)
    ask(log, "ann", 1)
    ask(log, "bob", 0)

    def answers(delivery: Delivery) -> int:
        return 422 if (delivery.said["stream"], delivery.said["approval"]) == ("desk-ann", "approval-0-0") else 200

    with Surface(answers) as surface:
        made = serve(log, surface, owner="r7")
    assert (1, 2) == (made.undelivered, made.published)
    assert 5 == surface.asked().count(("desk-ann", "approval-0-0"))
    assert ("desk-ann", "approval-1-0") in surface.asked()
    (given_up,) = [CODEC.decode_stored(each) for each in log.read("desk-ann") if each.type == "approval.undelivered"]
    assert facts.ApprovalUndelivered("approval-0-0", f"webhook+http://127.0.0.1:{surface.port}/…", given_up.why, 5, "r7") == given_up
    assert "answered 422" in given_up.why
    before = len(surface.came)
    with Surface() as other:
        serve(log, other)
        assert (before, []) == (len(surface.came), other.came)


def test_a_question_that_was_given_up_is_published_again_when_a_person_says_so_and_given_up_again(log):
    ask(log, "ann")
    with Surface(lambda delivery: 410) as surface:
        for _ in range(2):
            serve(log, surface)
            assert not redrive_approval(log, "desk-ann", "approval-0-0", by="ada", reason="mended")
            with pytest.raises(InputRefused, match="no question 'approval-0-0' that a surface refused"):
                redrive_approval(log, "desk-ann", "approval-0-0", by="bob")
        assert (10, 1) == (len(surface.came), len({each.id for each in surface.came}))
    with Surface() as other:
        serve(log, other)
        serve(log, other)
        assert [("desk-ann", "approval-0-0")] == other.asked()
        assert {each.body for each in surface.came} == {each.body for each in other.came}
    assert log.last_position() == log.checkpoints.load(PART)


def test_of_two_replicas_one_publishes_and_the_other_takes_over(log):
    async def run(surface: Surface) -> None:
        async with running(publisher(log, surface, "r1")) as second:
            async with running(publisher(log, surface, "r0")) as first:
                await eventually(lambda: first._leading or second._leading)
                ask(log, "ann")
                await eventually(lambda: len(surface.came) == 1, second)
                assert 1 == first._leading + second._leading
            ask(log, "ann", 1)
            await eventually(lambda: len(surface.came) == 2, second)
            assert second._leading

    with Surface() as surface:
        asyncio.run(run(surface))
    assert [("desk-ann", "approval-0-0"), ("desk-ann", "approval-1-0")] == surface.asked()


def test_an_event_that_cannot_be_read_stops_no_other(log):
    log.append("desk-eve", [NewEvent(NEW_ID(), "approval.requested", 99, b"\x80")], ANY)
    ask(log, "ann")
    with Surface() as surface:
        serve(log, surface)
    assert [("desk-ann", "approval-0-0")] == surface.asked()


def test_the_questions_of_other_agents_are_left_to_others(log):
    ask(log, "ann")
    with Surface() as surface:
        serve(log, surface, categories=["orders"])
        assert [] == surface.came
        serve(log, surface, categories=["desk"])
        assert 1 == len(surface.came)
    assert log.last_position() == log.checkpoints.load("approvals:desk")


class Broken:
    """A sink that raises what none should, twice."""

    shown, answer_url = "broken://here/…", ""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.tries = 0

    async def publish(self, publication: Publication) -> None:
        self.tries += 1
        if self.tries <= 2:
            raise ZeroDivisionError("s3cr3t")
        self.got.append(publication.approval_id)

    async def close(self) -> None:
        """Nothing."""


def test_whatever_a_sink_raises_the_question_is_offered_again(log):
    ask(log, "ann")
    ask(log, "ann", 1)
    sink, health = Broken(), Health()

    async def run() -> None:
        made = Publisher(log, CODEC, sink, owner="r", poll=0.02, patience=lambda failures: 0.1, watching=health)
        async with running(made):
            await eventually(lambda: True, made)

    asyncio.run(run())
    assert ["approval-0-0", "approval-1-0"] == sink.got
    assert ("ZeroDivisionError while it was published" in health.heard, any("s3cr3t" in each for each in health.heard)) == (True, False)


class Hanging:
    """A sink that forgets to return: of each of its first deliveries."""

    shown, answer_url = "hanging://here/…", ""

    def __init__(self, first: int) -> None:
        self.first, self.got = first, list[str]()

    async def publish(self, publication: Publication) -> None:
        self.first -= 1
        if self.first >= 0:
            await asyncio.Event().wait()
        self.got.append(publication.approval_id)

    async def close(self) -> None:
        """Nothing."""


def test_a_delivery_that_hangs_is_a_failure_and_then_no_sign_of_life(log):
    ask(log, "ann")
    sink, health = Hanging(1), Health()

    async def run() -> None:
        async with running(Publisher(log, CODEC, sink, owner="r", poll=0.02, watching=health, overdue=0.1)) as made:
            await eventually(lambda: made.report()["approvals"]["hanging"] == 1)
            ask(log, "bob")  # which gets there all the same
            await eventually(lambda: sink.got)
            heard = len(health.heard)
            await asyncio.sleep(0.2)
            assert ("hanging://here/…: a delivery under way for more than 0.1 s", heard) == (health.heard[-1], len(health.heard))

    asyncio.run(run())


def test_a_publisher_that_hangs_is_stuck_in_health_and_begun_again(log):
    for key in "abcd":
        ask(log, key)
    sink, seen, lines = Hanging(4), list[str](), io.StringIO()

    async def run() -> None:
        told = logger(file=lines)
        supervisor = Supervisor(told, {PART: 0.5})
        made = Publisher(log, CODEC, sink, owner="r", poll=0.02, watching=supervisor, overdue=0.2)
        watchdog = Watchdog(supervisor, asyncio.get_running_loop(), told, every=0.05)
        part = asyncio.create_task(supervisor.keep(PART, made.run))
        watchdog.start()
        try:

            def over() -> bool:
                health = supervisor.report()["parts"][PART]
                seen.append(f"{health['state']}: {health.get('error', '')}")
                return len(sink.got) == 4 and health["state"] == "running"

            await eventually(over, made)
            assert supervisor.parts[PART].restarts >= 1
        finally:
            watchdog.stop()
            part.cancel()
            await asyncio.gather(part, return_exceptions=True)
            watchdog.join(10)

    asyncio.run(run())
    assert any(each.startswith("failing: SinkUnavailable: hanging://here/…: ") for each in seen)
    assert '"event": "part stuck"' in lines.getvalue()


@pytest.mark.parametrize(("status", "reason"), [(500, "answered 500"), (429, "answered 429"), (0, "was reached, but ")])
def test_health_says_why_a_surface_takes_nothing(log, status, reason):
    ask(log, "ann")
    supervisor = Supervisor(logger(file=io.StringIO()), {PART: 60.0})

    async def run(surface: Surface) -> None:
        async with running(publisher(log, surface, watching=supervisor)):
            await eventually(lambda: reason in supervisor.report()["parts"][PART].get("error", ""))

    with Surface(lambda delivery: status) as surface:
        asyncio.run(run(surface))


def test_while_the_log_is_away_the_publisher_ends_for_its_supervisor_and_goes_on_afterwards(log, monkeypatch):
    ask(log, "ann")

    async def run(surface: Surface) -> None:
        made = publisher(log, surface)
        with monkeypatch.context() as patch:
            patch.setattr(type(log), "last_position", lambda self: (_ for _ in ()).throw(LogUnavailable("away")))
            with pytest.raises(LogUnavailable):
                await made.run()
        async with running(made):
            await eventually(lambda: True, made)

    with Surface() as surface:
        asyncio.run(run(surface))
    assert [("desk-ann", "approval-0-0")] == surface.asked()
