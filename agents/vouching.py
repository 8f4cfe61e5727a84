"""Signatures of outcomes and of people's answers: written beside them, and looked at before an agent is told.

Whoever settles an intent with keys at hand appends ``outcome.signed`` directly behind ``intent.settled``, in the same append, and
whoever answers an approval ``approval.signed`` behind ``approval.decided``. The fold passes them over: no state depends on a key.
A worker that insists looks at the bytes on the log before a turn that could see an outcome, and stops the stream when nobody
vouches for them; other keys go on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import attrs

from ..eventlog.codec import Codec
from ..eventlog.errors import Undecodable
from ..eventlog.events import NewEvent, StoredEvent
from ..eventlog.log import EventLog
from . import facts
from .errors import OutcomeDistrusted
from .intents import fact_id
from .signing import OFF, PERMISSIVE, REQUIRE, KeyRing, KeysRefused, Signature

if TYPE_CHECKING:
    from .run import RunState

_REMEMBERED: Final = 100_000


def signed_outcome(codec: Codec, keys: KeyRing, stream: str, intent_id: str, settled: NewEvent) -> NewEvent:
    """The signature of ``settled``, an encoded ``intent.settled`` for ``stream``, as the event that goes behind it."""
    made = keys.sign_outcome(stream, settled.schema, settled.data)
    fact = facts.OutcomeSigned(intent_id, made.key_id, made.signature)
    return codec.stage(fact, event_id=fact_id("outcome-signed", settled.event_id.hex()), correlation=settled.correlation, causation=settled.event_id)


def signed_decision(codec: Codec, keys: KeyRing, stream: str, approval_id: str, decided: NewEvent) -> NewEvent:
    """The same for an ``approval.decided``."""
    made = keys.sign_decision(stream, decided.schema, decided.data)
    fact = facts.ApprovalSigned(approval_id, made.key_id, made.signature)
    return codec.stage(fact, event_id=fact_id("decision-signed", decided.event_id.hex()), correlation=decided.correlation, causation=decided.event_id)


def vouched(codec: Codec, keys: KeyRing, stored: StoredEvent, name: str) -> NewEvent:
    """The signature of somebody who vouches afterwards for the outcome or answer ``stored``, that of the intent or approval ``name``."""
    fact: object
    if stored.type == "intent.settled":
        made = keys.sign_outcome(stored.stream, stored.schema, stored.data)
        fact = facts.OutcomeSigned(name, made.key_id, made.signature)
    else:
        made = keys.sign_decision(stored.stream, stored.schema, stored.data)
        fact = facts.ApprovalSigned(name, made.key_id, made.signature)
    event_id = fact_id("vouched", stored.event_id.hex(), made.key_id)
    return codec.stage(fact, event_id=event_id, correlation=stored.correlation, causation=stored.event_id)


@attrs.frozen
class _Seen:
    """An outcome that a turn could see."""

    #: What it is, in words, and the option by which somebody vouches for it.
    what: str
    option: str
    #: Of the intent or approval.
    name: str
    version: int
    #: The type of its signature.
    signed: str
    verify: Callable[[Signature, str, int, bytes], str | None]


@attrs.define(eq=False)
class OutcomeVerifier:
    """How a worker looks at the outcomes that a turn could see. Blocking, and safe in any thread."""

    #: ``permissive`` takes unsigned ones, ``require`` does not; neither takes wrong signatures.
    mode: str = attrs.field(validator=attrs.validators.in_((PERMISSIVE, REQUIRE)))
    keys: KeyRing
    codec: Codec
    #: Outcomes that were found authentic: an event never changes. Bounded; what is forgotten is looked at again.
    _known: OrderedDict[tuple[str, int], None] = attrs.field(factory=OrderedDict, init=False)

    def objection(self, log: EventLog, stream: str, run: RunState) -> OutcomeDistrusted | None:
        """Why no turn of ``stream`` may be run over ``run``, naming the first event at fault; ``None`` when all is authentic."""
        for seen in self._seen(run):
            if (stream, seen.version) in self._known:
                continue
            why = self._look(log, stream, seen)
            if why is not None:
                return OutcomeDistrusted(
                    f"{stream} version {seen.version}: {seen.what} {seen.name} is not authentic: {why}. No turn is run over it. "
                    f"If it is right: eventlog dead-letters redrive {stream} {seen.option} {seen.name} --signing-keys REFERENCE",
                    stream,
                    seen.version,
                )
            self._known[stream, seen.version] = None
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return None

    def _seen(self, run: RunState) -> Iterator[_Seen]:
        for intent in list(run.intents.values()):
            if intent.settled is not None:
                yield _Seen("the outcome of intent", "--intent", intent.intent_id, intent.settled_at, "outcome.signed", self.keys.verify_outcome)
        for activation in list(run.open.values()):
            for name, asked in list(activation.approvals.items()):
                if asked.decided is not None:
                    yield _Seen("the answer to", "--approval", name, activation.outcomes[name], "approval.signed", self.keys.verify_decision)

    def _look(self, log: EventLog, stream: str, seen: _Seen) -> str | None:
        """The signature stands behind the outcome; one that somebody gave later stands anywhere behind it."""
        why: str | None = None
        outcome: StoredEvent | None = None
        for upto in (seen.version + 1, None):
            for event in log.read(stream, after=seen.version - 1, upto=upto):
                if event.version == seen.version:
                    outcome = event
                elif outcome is not None and event.type == seen.signed and (found := self._signature(event, seen.name)) is not None:
                    wrong = seen.verify(found, stream, outcome.schema, outcome.data)
                    if wrong is None:
                        return None
                    why = why or wrong
        return why or (None if self.mode == PERMISSIVE else "it is not signed")

    def _signature(self, event: StoredEvent, name: str) -> Signature | None:
        try:
            fact = self.codec.decode_stored(event)
        except Undecodable:
            return None
        signs = fact.approval_id if isinstance(fact, facts.ApprovalSigned) else fact.intent_id
        return Signature(fact.key_id, fact.signature) if signs == name else None


def outcome_verifier(mode: str, keys: KeyRing | None, codec: Codec) -> OutcomeVerifier | None:
    """What ``mode``, one of ``signing.VERIFYING``, asks for; ``None`` for ``off``. Raises ``KeysRefused`` when there is nothing to verify with."""
    if mode == OFF:
        return None
    if keys is None:
        raise KeysRefused(f"outcomes cannot be verified ({mode}) without keys: give --signing-keys")
    return OutcomeVerifier(mode, keys, codec)
