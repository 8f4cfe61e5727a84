"""From outside: send, signal, cancel, answer, ask for state and results, in a program that runs no agent itself.

The shells alone: what is written is in ``sending`` and ``asking``, what is read in ``knowing`` and ``following``. ``AsyncClient``
runs the methods of ``Client`` in threads; it has no logic and no list of parameters of its own. A client that dies changes
nothing: whatever returned is durable, whatever did not can be sent again under the same id.
"""

from __future__ import annotations

import asyncio
import functools
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

import attrs

from ..eventlog.codec import Codec
from ..eventlog.log import EventLog
from ..eventlog.names import split_stream, stream_name
from ..eventlog.opening import open_log
from ..eventlog.registry import EventRegistry
from . import asking
from .app import App, Input, runtime_codec
from .doors import checked_input
from .errors import DefinitionError, ResultTimedOut
from .following import Ended, Following
from .knowing import known_state
from .runtime_events import runtime_registry
from .sending import Receipt, deliver, staged_input
from .signing import KeyRing

P = ParamSpec("P")
R = TypeVar("R")

_BREATH: Final = 0.005
"""Seconds between two looks at a log in which much is going on."""
_LONGEST: Final = 0.1
"""Seconds between two looks of an ``AsyncClient``, which holds no thread while it waits."""


@attrs.frozen
class _Sent:
    stream: str
    input_id: str
    #: Version of the input in its stream; -1 for a handle made from an id alone.
    version: int = -1
    #: It had been accepted before.
    duplicate: bool = False

    @property
    def id(self) -> str:
        """The input id: with agent and key it is all that is needed to ask later."""
        return self.input_id

    @property
    def agent(self) -> str:
        """The agent it was sent to."""
        return split_stream(self.stream)[0]

    @property
    def key(self) -> str:
        """The key it was sent to."""
        return split_stream(self.stream)[1]


@attrs.frozen
class Handle(_Sent):
    """An input that is durable, and the way to what becomes of it."""

    _client: Client = attrs.field(kw_only=True, repr=False, eq=False)

    def result(self, timeout: float | None = None) -> Any:
        """See ``Client.result``."""
        return self._client.result(self, timeout)


@attrs.frozen
class AsyncHandle(_Sent):
    """The same for ``AsyncClient``: ``await handle.result(timeout=30)``."""

    _client: AsyncClient = attrs.field(kw_only=True, repr=False, eq=False)

    async def result(self, timeout: float | None = None) -> Any:
        """See ``Client.result``."""
        return await self._client.result(self, timeout)


class Client:
    """Talks to the agents on a log. ``log`` is a URL, opened here and closed by ``close``, or a log that is open already.

    With ``app`` every input is checked before it is accepted, and ``state`` can be asked for. ``keys`` sign the answers to
    approvals, for workers that insist on that. Thread-safe.
    """

    def __init__(self, log: str | EventLog, app: App | None = None, *, keys: KeyRing | None = None) -> None:
        self._opened = open_log(log, create=False) if isinstance(log, str) else None
        self._log: EventLog = log if not isinstance(log, str) else self._opened  # type: ignore[assignment]
        self._app, self._keys = app, keys
        self._codec = app.codec if app is not None else runtime_codec()
        self._codecs: dict[type, Codec] = {}

    def close(self) -> None:
        """Close the log if it was opened here."""
        if self._opened is not None:
            self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, agent: str, key: str, payload: Any, *, id: str | None = None) -> Handle:
        """Give an agent an input; it is durable when this returns. The same ``id`` with the same payload is accepted once (S-2.2).

        Raises ``InputRefused`` when the id was used for another payload or (with the app) the agent cannot take it.
        """
        given = Input(agent, key, payload, uuid.uuid4().hex if id is None else id)
        staged = checked_input(self._app, given) if self._app is not None else staged_input(self._codec_for(payload), given)
        (receipt,) = deliver(self._log, [staged], [given.id])
        if not isinstance(receipt, Receipt):
            raise receipt
        return Handle(receipt.stream, receipt.input_id, receipt.version, receipt.duplicate, client=self)

    def signal(self, agent: str, key: str, name: str, payload: Any = None, *, id: str | None = None) -> asking.SignalSent:
        """Tell a key something that a ``ctx.signal(name)`` gets, begun before or later. The same ``id`` is told once."""
        return asking.signal(self._log, self._codec, self._known(agent), key, name, payload, uuid.uuid4().hex if id is None else id)

    def cancel(self, agent: str, key: str, *, by: str, reason: str = "", input_id: str | None = None, seq: int | None = None) -> asking.CancelAsked:
        """Ask an activation to end after cleaning up: the one of ``input_id`` or ``seq``, or the current one. Asking again changes nothing.

        Raises ``RequestRefused`` when nothing such is open.
        """
        return asking.cancel(self._log, self._codec, self._known(agent), key, input_id=input_id, seq=seq, by=by, reason=reason, app=self._app)

    def approve(self, agent: str, key: str, approval_id: str, *, by: str, reason: str = "", digest: bytes = b"") -> asking.Answered:
        """Answer an approval with yes; the first answer is final. Raises ``RequestRefused`` for one that is not open.

        ``digest`` (``PendingApproval.digest``, or how it begins) is what was seen: an answer to anything else is refused.
        """
        stream = stream_name(self._known(agent), key)
        return asking.answer(self._log, self._codec, stream, approval_id, approved=True, by=by, reason=reason, digest=digest, app=self._app, keys=self._keys)

    def deny(self, agent: str, key: str, approval_id: str, *, by: str, reason: str = "", digest: bytes = b"") -> asking.Answered:
        """Answer an approval with no; the same otherwise."""
        stream = stream_name(self._known(agent), key)
        return asking.answer(self._log, self._codec, stream, approval_id, approved=False, by=by, reason=reason, digest=digest, app=self._app, keys=self._keys)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def handle(self, agent: str, key: str, input_id: str) -> Handle:
        """A handle on an input that was sent elsewhere, or earlier."""
        return Handle(stream_name(self._known(agent), key), input_id, client=self)

    def result(self, handle: _Sent, timeout: float | None = None) -> Any:
        """What the input's activation ended with, or the last one that it went on as; plain values.

        Waits up to ``timeout`` seconds, for ever without one. Raises ``ActivationCancelled``, ``ActivationParked`` naming
        the error it failed with, or ``ResultTimedOut``; to ask again is always possible.
        """
        following, deadline = Following(handle.stream, handle.input_id, handle.version), _deadline(timeout)
        while True:
            found = following.look(self._log, self._codec)
            if isinstance(found, Ended):
                return found.value(handle.stream, handle.input_id)
            self._log.wait(found, min(_left(deadline, following, timeout), 1.0))
            time.sleep(_BREATH)

    def state(self, agent: str, key: str) -> Any:
        """The key's aggregate as it is now (its initial state when nothing has happened); ``None`` for an agent without one."""
        if self._app is None:
            raise DefinitionError("the state of a key is folded by its agent's code: give the client the app, Client(log, app)")
        return known_state(self._log, stream_name(self._known(agent), key), self._app).state

    def pending_approvals(self, agent: str | None = None, key: str | None = None, *, channel: str | None = None) -> list[asking.PendingApproval]:
        """Questions that wait for a person, oldest first: of one key, of one agent, or all."""
        if key is not None and agent is None:
            raise DefinitionError("pending_approvals(key=…) needs the agent, too")
        stream = stream_name(agent, key) if agent is not None and key is not None else None
        found = asking.pending(self._log, self._codec, stream=stream, channel=channel, app=self._app)
        return [each for each in found if agent in (None, each.agent)]

    def _codec_for(self, payload: Any) -> Codec:
        """Enough to write one input down without the app that knows its type."""
        kind = type(payload)
        if not hasattr(kind, "__event_type__"):
            return self._codec
        if kind not in self._codecs:
            self._codecs[kind] = Codec(EventRegistry(kind, base=runtime_registry()))
        return self._codecs[kind]

    def _known(self, agent: str) -> str:
        return self._app.agent(agent).name if self._app is not None else agent


def _threaded(method: Callable[Concatenate[Client, P], R]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(method, self._client, *args, **named)

    return call


def _handled(method: Callable[Concatenate[Client, P], Handle]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, AsyncHandle]]:
    @functools.wraps(method)
    async def call(self: AsyncClient, /, *args: P.args, **named: P.kwargs) -> AsyncHandle:
        sent = await asyncio.to_thread(method, self._client, *args, **named)
        return AsyncHandle(sent.stream, sent.input_id, sent.version, sent.duplicate, client=self)

    return call


class AsyncClient:
    """``Client`` for an event loop: the same methods, awaited. ``async with AsyncClient(url, app) as client: …``."""

    def __init__(self, log: str | EventLog, app: App | None = None, *, keys: KeyRing | None = None) -> None:
        self._client = Client(log, app, keys=keys)

    send = _handled(Client.send)
    handle = _handled(Client.handle)
    signal = _threaded(Client.signal)
    cancel = _threaded(Client.cancel)
    approve = _threaded(Client.approve)
    deny = _threaded(Client.deny)
    state = _threaded(Client.state)
    pending_approvals = _threaded(Client.pending_approvals)
    close = _threaded(Client.close)

    async def result(self, handle: _Sent, timeout: float | None = None) -> Any:
        """See ``Client.result``. No thread is held while it waits; being cancelled ends the wait and nothing else."""
        following, deadline, pause = Following(handle.stream, handle.input_id, handle.version), _deadline(timeout), _BREATH
        while True:
            found = await asyncio.to_thread(following.look, self._client._log, self._client._codec)
            if isinstance(found, Ended):
                return found.value(handle.stream, handle.input_id)
            await asyncio.sleep(min(_left(deadline, following, timeout), pause))
            pause = min(pause * 1.5, _LONGEST)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(deadline: float | None, following: Following, timeout: float | None) -> float:
    """Seconds left; raises ``ResultTimedOut`` when there are none."""
    if deadline is None:
        return 1.0
    left = deadline - time.monotonic()
    if left <= 0:
        place = f"{following.stream}, input {following.input_id!r}"
        raise ResultTimedOut(f"{place}: no result within {timeout:g} s; {following.standing}. Ask again with the same handle.")
    return left
