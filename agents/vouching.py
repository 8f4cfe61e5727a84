"""Signatures of outcomes: written beside them, and looked at before an agent is told.

Whoever settles an intent with keys at hand appends ``outcome.signed`` directly behind ``intent.settled``, in the same append. The
fold passes it over: no state depends on a key. A worker that insists looks at the bytes on the log before a turn that could see
the outcome, and stops the stream when they are nobody's; other keys go on.
"""

from __future__ import annotations

from collections import OrderedDict
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


def outcome_vouched(codec: Codec, keys: KeyRing, settled: StoredEvent, intent_id: str) -> NewEvent:
    """The same by somebody who vouches afterwards for an outcome that is on the log."""
    made = keys.sign_outcome(settled.stream, settled.schema, settled.data)
    fact = facts.OutcomeSigned(intent_id, made.key_id, made.signature)
    event_id = fact_id("outcome-vouched", settled.event_id.hex(), made.key_id)
    return codec.stage(fact, event_id=event_id, correlation=settled.correlation, causation=settled.event_id)


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
        for intent in list(run.intents.values()):
            if intent.settled is None or (stream, intent.settled_at) in self._known:
                continue
            why = self._look(log, stream, intent.intent_id, intent.settled_at)
            if why is not None:
                return OutcomeDistrusted(
                    f"{stream} version {intent.settled_at}: the outcome of intent {intent.intent_id} is not authentic: {why}. No turn is run over it. "
                    f"If it is right: eventlog dead-letters redrive {stream} --intent {intent.intent_id} --signing-keys REFERENCE",
                    stream,
                    intent.settled_at,
                )
            self._known[stream, intent.settled_at] = None
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return None

    def _look(self, log: EventLog, stream: str, intent_id: str, version: int) -> str | None:
        """The signature stands behind the outcome; one that somebody gave later stands anywhere behind it."""
        why: str | None = None
        settled: StoredEvent | None = None
        for upto in (version + 1, None):
            for event in log.read(stream, after=version - 1, upto=upto):
                if event.version == version:
                    settled = event
                elif settled is not None and event.type == "outcome.signed" and (found := self._signature(event, intent_id)) is not None:
                    wrong = self.keys.verify_outcome(found, stream, settled.schema, settled.data)
                    if wrong is None:
                        return None
                    why = why or wrong
        return why or (None if self.mode == PERMISSIVE else "it is not signed")

    def _signature(self, event: StoredEvent, intent_id: str) -> Signature | None:
        try:
            fact = self.codec.decode_stored(event)
        except Undecodable:
            return None
        return Signature(fact.key_id, fact.signature) if fact.intent_id == intent_id else None


def outcome_verifier(mode: str, keys: KeyRing | None, codec: Codec) -> OutcomeVerifier | None:
    """What ``mode``, one of ``signing.VERIFYING``, asks for; ``None`` for ``off``. Raises ``KeysRefused`` when there is nothing to verify with."""
    if mode == OFF:
        return None
    if keys is None:
        raise KeysRefused(f"outcomes cannot be verified ({mode}) without keys: give --signing-keys")
    return OutcomeVerifier(mode, keys, codec)
