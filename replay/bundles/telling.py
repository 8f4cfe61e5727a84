"""Digests in one event of what stands in another: where that was redacted, they would give it away to whoever tries values.

A question's digest is bound to its answer, an input's stands with the one who sent it, those of events for an aggregate
with the turn that decided on them, and a request's with the budget that kept it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...agents.app import runtime_codec
from ...eventlog.codec import Codec
from ...eventlog.events import StoredEvent
from .redacting import Redacting

Histories = Mapping[str, Sequence[StoredEvent]]


def redact_all(redacting: Redacting, histories: Histories) -> dict[str, tuple[Sequence[StoredEvent], list[int]]]:
    """The events of each stream with what the paths name replaced, and the versions of those that were changed."""
    done = {name: redacting.of_stream(events) for name, events in histories.items()}
    if not redacting.redactions:
        return done
    hidden = _Hidden.of(histories, {name: frozenset(versions) for name, (_, versions) in done.items()}, redacting)
    for name, (events, versions) in done.items():
        changed = frozenset(versions)
        telling = {old.version for old in histories[name] if old.version not in changed and hidden.is_told_by(old)}
        if telling:
            done[name] = ([redacting.without_digest(each) if each.version in telling else each for each in events], sorted([*versions, *telling]))
    return done


@attrs.frozen
class _Hidden:
    """What was redacted, by what other events have digests of."""

    redacting: Redacting
    codec: Codec
    #: Versions in which something was redacted, of every stream that is put in.
    versions: Mapping[str, frozenset[int]]
    #: Digests of the questions that were.
    questions: frozenset[bytes]
    #: (stream, id) of inputs that are put in as they are.
    inputs: frozenset[tuple[str, str]]
    #: Streams with a model call that was.
    calls: frozenset[str]

    @classmethod
    def of(cls, histories: Histories, versions: Mapping[str, frozenset[int]], redacting: Redacting) -> _Hidden:
        codec = runtime_codec()
        questions, inputs, calls = set(), set(), set()
        for name, events in histories.items():
            for event in events:
                changed = event.version in versions[name]
                if event.type == "approval.requested" and changed:
                    questions.add(codec.tree(event.data).get("digest"))
                elif event.type == "input.received" and not changed:
                    inputs.add((name, codec.tree(event.data).get("input_id")))
                elif event.type == "model_call.cached" and changed:
                    calls.add(name)
        return cls(redacting, codec, versions, frozenset(questions), frozenset(inputs), frozenset(calls))

    def is_told_by(self, event: StoredEvent) -> bool:
        """Whether ``event`` has a digest of something redacted, or of what is not put in and would have been."""
        match event.type:
            case "approval.decided":
                return self.codec.tree(event.data).get("digest") in self.questions
            case "input.sent":
                sent = self.codec.tree(event.data)
                return (sent.get("stream"), sent.get("input_id")) not in self.inputs
            case "aggregate.saved":
                return self._saved(self.codec.tree(event.data))
            case "budget.reached":
                return event.stream in self.calls
        return False

    def _saved(self, saved: dict[str, Any]) -> bool:
        types: Sequence[str] = saved.get("types") or ()
        there = self.versions.get(str(saved.get("stream")))
        if there is None:
            return any(each.type in ("", *types) for each in self.redacting.redactions)
        first = saved.get("version")
        return not isinstance(first, int) or not there.isdisjoint(range(first, first + len(types)))
