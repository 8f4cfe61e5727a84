"""One delivery over a real wire: what is sent, what its answer means, and what nobody ever gets to see."""

from __future__ import annotations

import asyncio
import base64

import pytest

from intentlog.agents.approvals import document, opened
from intentlog.agents.errors import NotAuthentic
from intentlog.agents.signing import KeyRing
from intentlog.effector.approvals import Publication, SinkFailed, SinkRefused, SinkUnavailable, parse_webhook
from intentlog.effector.approvals.webhook import Webhook
from intentlog.eventlog.clock import SECOND, system_clock
from intentlog.eventlog.opening import open_log
from tests.effector.approvals.surface import RING, Surface, ask

SECRETS = ("hunter2", "s3cr3t", "t0k3n", "SECRET")


def deliver(surface: Surface, body: bytes = b"{}", *, seconds: float = 10.0, url: str = "") -> None:
    async def publish() -> None:
        sink = Webhook(parse_webhook(url or surface.url), RING, system_clock, seconds=seconds)
        try:
            await sink.publish(Publication("id-1", "desk-ann", "approval-0-0", body))
        finally:
            await sink.close()

    asyncio.run(publish())


def test_a_question_comes_as_it_is_written_and_its_receiver_knows_whose_it_is():
    log = open_log("memory://")
    asked = ask(log, "ann", cents=4200, raw=b"\x00\xff", note="schön")
    (event,) = log.read("desk-ann")
    with Surface() as surface:
        deliver(surface, document(event, asked, "https://ops.example/answers"))
    (came,) = surface.came
    assert ("/hooks/s3cr3t?token=t0k3n", "id-1") == (came.path, came.id)
    assert "Basic " + base64.b64encode(b"ann:hunter2").decode() == came.headers["authorization"]
    found = opened(came.body, came.headers["intentlog-signature"], RING, now=system_clock())
    assert (asked.question, asked.channel, asked.digest, asked.expires_at) == (found.question, found.channel, found.digest, found.expires_at)
    assert (str(event.id), "desk-ann", "approval-0-0", "https://ops.example/answers") == (found.id, found.stream, found.approval_id, found.answer_url)
    assert {"cents": 4200, "note": "schön", "raw": {"$bytes": "AP8="}} == found.details
    log.close()


def test_a_delivery_that_is_altered_forged_or_old_is_not_opened():
    with Surface() as surface:
        deliver(surface, b'{"a": 1}')
    (came,) = surface.came
    header, now = came.headers["intentlog-signature"], system_clock()
    wrong = {
        "another body": (b'{"a": 2}', header, RING, now, "not one of this body"),
        "another time": (came.body, header.replace("t=", "t=1"), RING, now, "not one of this body"),
        "another ring": (came.body, header, KeyRing({"june": bytes(32)}), now, "not in the ring"),
        "another secret": (came.body, header, KeyRing({"may": bytes(32)}), now, "not one of this body"),
        "old": (came.body, header, RING, now + 400 * SECOND, "400 s from now|401 s from now"),
        "no signature": (came.body, "", RING, now, "must be t=SECONDS"),
        "no question": (came.body, header, RING, now, "no published approval"),
    }
    for body, signature, ring, at, said in wrong.values():
        with pytest.raises(NotAuthentic, match=said):
            opened(body, signature, ring, now=at)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, SinkRefused), (401, SinkRefused), (410, SinkRefused), (302, SinkRefused), (307, SinkRefused), (408, SinkUnavailable), (429, SinkUnavailable)]
    + [(status, SinkUnavailable) for status in (500, 503, 0)],
)
def test_a_refusal_is_told_from_what_may_heal_and_nothing_that_was_said_is_repeated(status, kind):
    with Surface(lambda delivery: status) as surface, pytest.raises(SinkFailed) as failed:
        deliver(surface)
    assert kind is type(failed.value)
    assert 1 == len(surface.came)  # a redirect is not followed
    assert not any(secret in str(failed.value) or secret in repr(failed.value.__cause__) for secret in SECRETS)
    assert f"127.0.0.1:{surface.port}/…" in str(failed.value)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_every_2xx_is_taken(status):
    with Surface(lambda delivery: status) as surface:
        deliver(surface)
    assert 1 == len(surface.came)


def test_nobody_there_and_nobody_answering_may_heal():
    with Surface() as surface:
        gone = surface.url
    with pytest.raises(SinkUnavailable, match="ConnectError"):
        deliver(surface, url=gone)

    def slow(delivery: object) -> int:
        import threading

        threading.Event().wait(1.0)
        return 200

    with Surface(slow) as surface, pytest.raises(SinkUnavailable, match="Timeout"):
        deliver(surface, seconds=0.2)
