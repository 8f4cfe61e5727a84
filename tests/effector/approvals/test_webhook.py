"""One delivery over a real wire: what is sent, what its answer means, and what nobody ever gets to see."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import threading
from collections.abc import Iterator

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


def deliver(surface: Surface | None, body: bytes = b"{}", *, seconds: float = 10.0, url: str = "") -> None:
    async def publish() -> None:
        sink = Webhook(parse_webhook(surface.url if surface is not None and not url else url), RING, system_clock, seconds=seconds)
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
        threading.Event().wait(1.0)
        return 200

    with Surface(slow) as surface, pytest.raises(SinkUnavailable, match=r"gave no answer within 0\.2 s"):
        deliver(surface, seconds=0.2)


@contextlib.contextmanager
def talking(first: bytes, then: bytes, pause: float) -> Iterator[tuple[str, list[int]]]:
    """A surface that never comes to an end: its URL, and the bytes that it got rid of."""
    sent, over = [0], threading.Event()

    def talk(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(first)
                while not over.wait(pause):
                    sent[0] += connection.send(then)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=talk, args=(server,), daemon=True)
        thread.start()
        try:
            yield f"webhook+http://127.0.0.1:{server.getsockname()[1]}/x", sent
        finally:
            over.set()
            thread.join(10)


@pytest.mark.parametrize(
    ("first", "then"),
    [(b"", b"H"), (b"HTTP/1.1 200 OK\r\n", b"X-Drip: 1\r\n"), (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n")],
    ids=["half a status", "headers", "answers to come"],
)
def test_an_answer_that_drips_is_no_answer_in_time(first, then):
    with talking(first, then, 0.02) as (url, _), pytest.raises(SinkUnavailable, match=r"gave no answer within 0\.5 s"):
        deliver(None, url=url, seconds=0.5)


def test_headers_without_end_are_not_read_to_the_end():
    flood = b"X-Flood: " + b"x" * 4_000 + b"\r\n"
    with talking(b"HTTP/1.1 200 OK\r\n", flood, 0.0) as (url, sent):
        with pytest.raises(SinkUnavailable, match="RemoteProtocolError"):
            deliver(None, url=url, seconds=30.0)
        assert 32 << 20 > sent[0]  # what buffers of sockets hold


def test_a_body_without_end_is_not_waited_for():
    with talking(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n", b"x", 0.02) as (url, _):
        deliver(None, url=url, seconds=30.0)


#: Which of the two is a matter of whose end of the connection is closed first.
REACHED = "was reached, but (gave no answer in HTTP|the connection broke)"


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"nonsense\r\n\r\n", REACHED), (b"", REACHED), (None, "could not be reached")],
)
def test_a_surface_that_speaks_no_http_is_told_from_one_that_is_not_there(answer, said):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def speak() -> None:
            came, _ = server.accept()
            with came:
                came.recv(65_536)
                came.sendall(answer)

        speaking = threading.Thread(target=speak)
        if answer is None:
            server.close()
        else:
            speaking.start()
        with pytest.raises(SinkUnavailable, match=said) as told:
            deliver(None, url=f"webhook+http://127.0.0.1:{port}/s3cr3t")
        if answer is not None:
            speaking.join(10)
    assert not [each for each in SECRETS if each in str(told.value)]
