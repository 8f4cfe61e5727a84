"""A webhook as a sink: one POST a question, signed. Nothing of what the other side says is read but the status."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

import httpx

from ...agents.approvals import ID_HEADER, SIGNATURE_HEADER, signature_header
from ...agents.signing import KeyRing
from ...eventlog.clock import Clock
from .address import WebhookAddress
from .errors import SinkRefused, SinkUnavailable
from .sink import Publication

_SECONDS: Final = 10.0
"""For one delivery: from the connection to the last header of its answer, however steadily that comes."""
_LATER: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Refusals that heal."""


class Webhook:
    """Posts questions to one address. Belongs to one event loop."""

    def __init__(self, address: WebhookAddress, keys: KeyRing, clock: Clock, *, seconds: float = _SECONDS) -> None:
        self.shown, self.answer_url = address.shown, address.answer_url
        self._address, self._keys, self._clock = address, keys, clock
        self._seconds = seconds
        self._client: httpx.AsyncClient | None = None

    async def publish(self, publication: Publication) -> None:
        """See ``ApprovalsSink``. 2xx is taken; 408, 425, 429 and 5xx may heal; any other status, a redirect too, is a refusal.

        The body of an answer is not read, and of its headers no more than the 100 KiB that h11 allows.
        """
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "intentlog",
            ID_HEADER: publication.id,
            SIGNATURE_HEADER: signature_header(self._keys, publication.body, self._clock()),
        }
        if self._client is None:
            # Neither proxies nor credentials from the environment: the question goes where it was said to go. Redirects are not followed.
            self._client = httpx.AsyncClient(auth=self._address.auth, timeout=self._seconds, follow_redirects=False, trust_env=False)
        try:
            # The client's own timeouts are for one read or write each: an answer that drips would never be late.
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream("POST", self._address.url, content=publication.body, headers=headers) as answer,
            ):
                status = answer.status_code
        except (TimeoutError, httpx.TimeoutException):
            raise SinkUnavailable(f"{self.shown} gave no answer within {self._seconds:g} s") from None
        except httpx.HTTPError as problem:  # its text may hold the URL
            raise SinkUnavailable(f"{self.shown} {_what_failed(problem)}: {type(problem).__name__}") from None
        if 200 <= status < 300:
            return
        if status in _LATER or status >= 500:
            raise SinkUnavailable(f"{self.shown} answered {status}")
        raise SinkRefused(f"{self.shown} answered {status}")

    async def close(self) -> None:
        """Give connections back; the next delivery opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _what_failed(problem: httpx.HTTPError) -> str:
    if isinstance(problem, httpx.ConnectError):
        return "could not be reached"
    if isinstance(problem, httpx.RemoteProtocolError):
        return "was reached, but gave no answer in HTTP"
    return "was reached, but the connection broke" if isinstance(problem, httpx.NetworkError) else "could not be asked"
