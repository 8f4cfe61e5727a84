"""Signatures of one stream, checked against a key ring: of what agents staged, of how it ended, of what people vouched for.

What nobody signed is counted, not called a fault: there may have been no keys then. A signature that is wrong is a fault; so is one
by a key that is not in the ring, so give retired keys, too, when you look at what is old.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ..agents import facts
from ..agents.signing import KeyRing, Signature
from ..eventlog.events import StoredEvent


@attrs.define(eq=False)
class Signatures:
    """Told of a stream's facts in order."""

    keys: KeyRing
    #: Intents, outcomes and answers for which no signature has come yet: (kind, id) → the event.
    _unsigned: dict[tuple[type, str], StoredEvent] = attrs.field(factory=dict)

    @property
    def unsigned(self) -> int:
        """Intents, outcomes and answers that nobody vouches for."""
        return len(self._unsigned)

    def objection(self, stored: StoredEvent, fact: Any) -> str:
        """Why the signature that ``fact`` holds is none; empty when it is one, or it holds none."""
        if isinstance(fact, facts.IntentStaged | facts.IntentSettled):
            self._unsigned[type(fact), fact.intent_id] = stored
        elif isinstance(fact, facts.ApprovalDecided):
            self._unsigned[type(fact), fact.approval_id] = stored
        elif isinstance(fact, facts.IntentSigned):
            return self._of("intent", facts.IntentStaged, fact.intent_id, self.keys.verify_intent, fact)
        elif isinstance(fact, facts.OutcomeSigned):
            return self._of("the outcome of intent", facts.IntentSettled, fact.intent_id, self.keys.verify_outcome, fact)
        elif isinstance(fact, facts.ApprovalSigned):
            return self._of("the answer to", facts.ApprovalDecided, fact.approval_id, self.keys.verify_decision, fact)
        elif isinstance(fact, facts.IntentReadmitted):
            said = (fact.number, fact.by, fact.reason, fact.attempts, fact.schema, fact.payload)
            why = self.keys.verify_readmission(Signature(fact.key_id, fact.signature), stored.stream, *said)
            return f"the readmission of intent {fact.intent_id} by {fact.by!r:.80}: {why}" if why else ""
        return ""

    def _of(self, what: str, kind: type, name: str, verify: Callable[[Signature, str, int, bytes], str | None], fact: Any) -> str:
        signed = self._unsigned.get((kind, name))
        if signed is None:  # it has a good one, which is the one that counts; or it is of nothing here
            return ""
        why = verify(Signature(fact.key_id, fact.signature), signed.stream, signed.schema, signed.data)
        if why is None:
            del self._unsigned[kind, name]
            return ""
        return f"{what} {name} at version {signed.version}: {why}"
