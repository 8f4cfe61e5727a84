"""What one input led to, across streams: its activation, the effects, the inputs sent on, their activations, the replies.

Followed from stream to stream by what the facts themselves say (``input.sent`` names the stream and the id), so that only
the streams concerned are read, from the input on and no further than its last outcome.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import attrs

from ..agents import facts
from ..agents.app import App, runtime_codec
from ..agents.intents import input_event_id
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from .finding import event_near, event_with_id
from .story import Line, story

MOST: Final = 2_000
"""Events of one tree."""
_RECEIVED: Final = "input.received"
_CONTINUED: Final = "activation.continued"
_COMPLETED: Final = "activation.completed"
_REPLIED: Final = "reply.received"


@attrs.define(eq=False)
class Traced:
    """One event of the tree."""

    line: Line
    #: The event that caused it; ``None`` for the root.
    parent: Traced | None
    children: list[Traced] = attrs.field(factory=list)

    @property
    def stored(self) -> StoredEvent:
        return self.line.stored

    def above(self) -> Iterator[Traced]:
        """The event's causes, up to the root."""
        each = self.parent
        while each is not None:
            yield each
            each = each.parent

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Traced]]:
        """The event and everything below it, each with its depth, causes before effects."""
        waiting: list[tuple[int, Traced]] = [(depth, self)]
        while waiting:
            level, each = waiting.pop()
            yield level, each
            waiting.extend((level + 1, child) for child in reversed(each.children))


@attrs.frozen
class Trace:
    """A whole tree."""

    root: Traced
    #: The event that was asked for.
    asked: Traced
    events: int
    #: There is more than was followed.
    cut: bool


def trace(log: EventLog, event: StoredEvent, app: App | None = None, *, most: int = MOST) -> Trace:
    """The tree that ``event`` belongs to: up to the input that nobody else had sent, and down to everything it led to.

    An event without a correlation is a tree of its own. Raises ``NoSuchId`` when an input that it names is not there.
    """
    following = _Following(log, app, most)
    root = _first_input(log, event)
    if root.type == _RECEIVED:
        following.follow(root)
    asked = following.known.get((event.stream, event.event_id))
    if asked is None:  # appended by hand, or beyond the most
        asked = following.alone(event)
    return Trace(following.root or asked, asked, len(following.known), following.cut)


def _first_input(log: EventLog, event: StoredEvent) -> StoredEvent:
    """Up from input to input: an input that an agent sent is correlated with that agent's own."""
    seen: set[bytes] = set()
    while event.correlation and event.correlation not in seen and event.correlation != event.event_id:
        seen.add(event.correlation)
        event = _continued(log, event.stream, event.correlation) or event_with_id(log, event.correlation, event.stream)
    return event


def _continued(log: EventLog, stream: str, input_id: bytes) -> StoredEvent | None:
    """The end of an activation that began another with the input of this event id: no event of its own bears that id."""
    codec = runtime_codec()
    for stored in log.read(stream, payloads=False):
        if stored.event_id == input_id:
            return stored
        if stored.type == _CONTINUED:
            (whole,) = log.read(stream, after=stored.version - 1, upto=stored.version)
            if input_event_id(codec.decode_stored(whole).input.input_id) == input_id:
                return stored
    return None


@attrs.define(eq=False)
class _Following:
    log: EventLog
    app: App | None
    most: int
    root: Traced | None = None
    cut: bool = False
    #: (stream, event id) → its place in the tree.
    known: dict[tuple[str, bytes], Traced] = attrs.field(factory=dict)
    #: The same by event id alone, for causes in another stream.
    anywhere: dict[bytes, Traced] = attrs.field(factory=dict)
    #: Inputs yet to be followed, and the event that sent each.
    waiting: deque[tuple[StoredEvent, Traced | None]] = attrs.field(factory=deque)

    def alone(self, event: StoredEvent) -> Traced:
        (line,) = story(self.log, event.stream, self.app, first=event.version, last=event.version)
        return Traced(line, None)

    def follow(self, root: StoredEvent) -> None:
        self.waiting.append((root, None))
        while self.waiting and not self.cut:
            received, sender = self.waiting.popleft()
            if (received.stream, received.event_id) not in self.known:
                self._activation(received, sender)
        self._hang_replies()

    def _hang_replies(self) -> None:
        """A reply was read before what it replies with: below the end of that activation is its place."""
        ends = {(node.stored.stream, node.stored.correlation): node for node in self.known.values() if node.stored.type == _COMPLETED}
        for node in self.known.values():
            if node.stored.type != _REPLIED or node.parent is None:
                continue
            end = ends.get((node.line.content.stream, node.stored.causation))
            if end is not None and node not in end.above():
                node.parent.children.remove(node)
                node.parent = end
                end.children.append(node)

    def _activation(self, received: StoredEvent, sender: Traced | None) -> None:
        """Everything in one stream that an input led to there, up to its last outcome."""
        part = _Part({received.event_id})
        for line in story(self.log, received.stream, self.app, first=received.version):
            stored, fact = line.stored, line.content
            own = stored.event_id == received.event_id
            if not own and stored.correlation not in part.ids:
                if isinstance(fact, facts.SignalReceived):
                    part.signals[fact.signal_id] = line
                continue
            if len(self.known) >= self.most:
                self.cut = True
                return
            if isinstance(fact, facts.SignalTaken) and (signal := part.signals.pop(fact.signal_id, None)) is not None:
                self._hung(line, self._hung(signal, None, received), received)
                continue
            node = self._hung(line, sender if own else None, received)
            part.take(fact)
            if isinstance(fact, facts.InputSent):
                self._sent(fact, node)
            elif isinstance(fact, facts.AggregateSaved):
                self._emitted(fact, node)
            if part.over:
                return

    def _hung(self, line: Line, sender: Traced | None, received: StoredEvent) -> Traced:
        """The event under its cause: what it names itself, else the input."""
        stored = line.stored
        parent = sender
        if parent is None and stored.causation:
            parent = self.known.get((stored.stream, stored.causation)) or self.anywhere.get(stored.causation)
        if parent is None:
            parent = self.known.get((received.stream, received.event_id)) or self.root
        node = Traced(line, parent)
        if parent is None:
            self.root = node
        else:
            parent.children.append(node)
        self.known[stored.stream, stored.event_id] = node
        self.anywhere.setdefault(stored.event_id, node)
        return node

    def _emitted(self, fact: facts.AggregateSaved, node: Traced) -> None:
        """The events that the turn had for another aggregate, in its stream."""
        last = fact.version + len(fact.types) - 1
        for line in story(self.log, fact.stream, self.app, first=fact.version, last=last) if self.log.head(fact.stream) >= last else ():
            if line.stored.correlation == node.stored.correlation:
                self._hung(line, node, node.stored)

    def _sent(self, fact: facts.InputSent, node: Traced) -> None:
        event_id = input_event_id(fact.input_id)
        found = event_near(self.log, fact.stream, event_id, node.stored.position)
        if found is not None:
            self.waiting.append((found, node))


@attrs.define(eq=False)
class _Part:
    """What is still to come in a stream."""

    #: Event ids that the events looked for are correlated with.
    ids: set[bytes]
    #: Signals that nobody has taken yet, by id: who sent them belongs to no input until an activation does.
    signals: dict[str, Line] = attrs.field(factory=dict)
    open: set[str] = attrs.field(factory=set)
    ended: bool = False

    @property
    def over(self) -> bool:
        return self.ended and not self.open

    def take(self, fact: Any) -> None:
        if isinstance(fact, facts.InputSent):
            self.ids.add(input_event_id(fact.input_id))  # the reply is correlated with what it replies to
        elif isinstance(fact, facts.IntentStaged):
            self.open.add(fact.intent_id)
        elif isinstance(fact, facts.IntentSettled):
            self.open.discard(fact.intent_id)
        elif isinstance(fact, facts.Continued):
            self.ids.add(input_event_id(fact.input.input_id))
        elif isinstance(fact, facts.Completed):
            self.ended = True
