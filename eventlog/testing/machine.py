"""A Hypothesis state machine: any store against a model of dicts and lists. Only this module needs Hypothesis.

Names, moments and ids are drawn from a handful each, so that conflicts, duplicates and takeovers are common.
"""

from __future__ import annotations

import random

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ..clock import Micros
from ..errors import WrongExpectedVersion
from ..events import NewEvent
from ..log import Appended, AppendRequest, Claim, Duplicate, EventLog, Fence, Outcome, Snapshot, StreamAppend, Wake
from ..names import category_of
from ..versions import ANY, EXISTS, NO_STREAM
from .maker import NOON, StoreMaker, Ticking, several
from .model import Model

_STREAMS = ("a-1", "a-2", "b-%", "b-\U0001f600")
_QUEUES = ("q", "p")
_OWNERS = ("me", "you")

_ids = st.integers(1, 8).map(lambda number: number.to_bytes(16, "big"))
_events = st.builds(NewEvent, _ids, st.sampled_from(["k.one", "k.two"]), st.just(1), st.sampled_from([b"", b"\x00x"]))
_new_events = st.builds(NewEvent, st.uuids().map(lambda made: made.bytes), st.sampled_from(["k.one", "k.two"]), st.just(1), st.binary(max_size=4))
_expected = st.one_of(st.just(ANY), st.sampled_from([NO_STREAM, EXISTS]), st.integers(-1, 6))
_wakes = st.builds(Wake, st.sampled_from(_QUEUES), st.one_of(st.none(), st.integers(NOON - 20, NOON + 200)), st.booleans())
_parts = st.builds(
    StreamAppend,
    st.sampled_from(_STREAMS),
    st.lists(st.one_of(_new_events, _events), max_size=3),
    _expected,
    st.lists(_wakes, max_size=2, unique_by=lambda w: w.queue),
)
_fences = st.builds(Fence, st.sampled_from(_QUEUES), st.sampled_from(_STREAMS), st.integers(1, 4), st.booleans())
_requests = st.builds(
    AppendRequest,
    st.lists(_parts, min_size=1, max_size=3, unique_by=lambda part: part.stream),
    st.one_of(st.just([]), st.lists(_fences, max_size=1)),
)


class LogMachine(RuleBasedStateMachine):
    """Rules over a store and its model; ``log_machine`` gives it a store."""

    maker: StoreMaker

    @initialize()
    def open(self) -> None:
        self.clock = Ticking()
        self._opened = several(self.maker, 2, self.clock)
        self.logs = list(self._opened.__enter__())
        self.chance = random.Random(len(self.logs))
        self.model = Model()
        self.sent: list[AppendRequest] = []
        self.claims: list[Claim] = []

    def teardown(self) -> None:
        if hasattr(self, "_opened"):
            self._opened.__exit__(None, None, None)

    @property
    def log(self) -> EventLog:
        """Now one object on the log, now the other: neither may trust what it remembers from before the other's writes."""
        return self.chance.choice(self.logs)

    def _check(self, request: AppendRequest, outcome: Outcome) -> None:
        wanted = self.model.judge(request)
        assert wanted is type(outcome), f"expected {wanted.__name__}, got {outcome!r} for {request}"
        if isinstance(outcome, Appended):
            assert tuple(self.model.head(part.stream) + 1 for part in request.parts) == outcome.first_versions
            self.model.apply(request)
        if isinstance(outcome, Appended | Duplicate):
            for part, first, positions in zip(request.parts, outcome.first_versions, outcome.positions, strict=True):
                stored = {found.event_id: found for found in self.logs[0].read(part.stream)}
                assert [stored[new.event_id].position for new in part.events] == list(positions)
                assert not part.events or stored[part.events[0].event_id].version == first
        if isinstance(outcome, WrongExpectedVersion):
            assert self.model.head(outcome.stream) == outcome.actual

    @rule(requests=st.lists(_requests, min_size=1, max_size=3))
    def append_batch(self, requests: list[AppendRequest]) -> None:
        outcomes = self.log.append_batch(requests)
        assert len(requests) == len(outcomes)
        for request, outcome in zip(requests, outcomes, strict=True):
            self._check(request, outcome)
        self.sent.extend(requests)

    @rule(part=_parts)
    def append_one(self, part: StreamAppend) -> None:
        request = AppendRequest([part])
        self._check(request, self.log.append_batch([request])[0])
        self.sent.append(request)

    @rule(stream=st.sampled_from(_STREAMS), new=st.lists(_events, min_size=1, max_size=2))
    def append_known_ids(self, stream: str, new: list[NewEvent]) -> None:
        self.append_one(StreamAppend(stream, new, ANY))

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 10_000), new=_new_events, change=st.sampled_from(["add", "data", "type", "drop", "twice"]))
    def send_again_changed(self, choice: int, new: NewEvent, change: str) -> None:
        part = self.sent[choice % len(self.sent)].parts[0]
        old = list(part.events)
        changed = {
            "add": [*old, new],
            "data": [attrs.evolve(each, data=new.data) for each in old],
            "type": [attrs.evolve(each, type=new.type) for each in old],
            "drop": old[1:],
            "twice": [new, new, *old],
        }[change]
        request = AppendRequest([StreamAppend(part.stream, changed, ANY, part.wakes)])
        self._check(request, self.log.append_batch([request])[0])

    @precondition(lambda self: self.sent)
    @rule(choice=st.integers(0, 10_000))
    def send_again(self, choice: int) -> None:
        request = self.sent[choice % len(self.sent)]
        self._check(request, self.log.append_batch([request])[0])

    @precondition(lambda self: self.claims)
    @rule(choice=st.integers(0, 10_000), new=_new_events, release=st.booleans())
    def append_under_a_claim(self, choice: int, new: NewEvent, release: bool) -> None:
        held = self.claims[choice % len(self.claims)]
        request = AppendRequest([StreamAppend(held.name, [new], ANY)], [Fence(held.queue, held.name, held.token, release)])
        self._check(request, self.log.append_batch([request])[0])

    @rule(
        stream=st.sampled_from(_STREAMS), after=st.integers(-1, 5), upto=st.one_of(st.none(), st.integers(-1, 6)), limit=st.one_of(st.none(), st.integers(0, 4))
    )
    def read(self, stream: str, after: int, upto: int | None, limit: int | None) -> None:
        known = list(enumerate(self.model.streams.get(stream, [])))
        wanted = [(version, new) for version, new in known if version > after and (upto is None or version <= upto)]
        for backwards in (False, True):
            got = self.log.read(stream, after=after, upto=upto, limit=limit, backwards=backwards)
            cut = (wanted[::-1] if backwards else wanted)[:limit]
            assert cut == [(found.version, NewEvent(found.event_id, found.type, found.schema, found.data)) for found in got]

    @rule(
        types=st.sets(st.sampled_from(["k.one", "k.two"])),
        categories=st.sets(st.sampled_from(["a", "b"])),
        prefix=st.sampled_from(["", "a", "b-%", "a-1", "c"]),
    )
    def read_all(self, types: set[str], categories: set[str], prefix: str) -> None:
        found = list(self.log.read_all(types=types, categories=categories))
        wanted = [
            place
            for place in self.model.order
            if (not types or self.model.streams[place[0]][place[1]].type in types) and (not categories or category_of(place[0]) in categories)
        ]
        assert wanted == [(event.stream, event.version) for event in found]
        assert sorted(name for name in self.model.streams if name.startswith(prefix)) == list(self.log.streams(prefix))

    @rule(
        queue=st.sampled_from(_QUEUES),
        owner=st.sampled_from(_OWNERS),
        limit=st.integers(1, 4),
        lasting=st.integers(1, 60),
        categories=st.frozensets(st.sampled_from("ab")),
    )
    def claim_due(self, queue: str, owner: str, limit: int, lasting: int, categories: frozenset[str]) -> None:
        now = self.clock.now
        due = self.model.due(queue, now, categories)
        got = self.log.schedule.claim_due(queue, owner, now=now, until=now + lasting, limit=limit, categories=categories)
        assert sorted(due.values())[:limit] == [found.wake_at for found in got]
        for found in got:
            lease = self.model.lease(queue, found.name)
            assert found.token > lease.token
            assert Claim(queue, found.name, found.token, due[found.name]) == found
            lease.token, lease.owner, lease.until = found.token, owner, now + lasting
        self.claims.extend(got)

    @rule(queue=st.sampled_from(_QUEUES), names=st.lists(st.sampled_from(_STREAMS), max_size=3), owner=st.sampled_from(_OWNERS), lasting=st.integers(1, 60))
    def acquire(self, queue: str, names: list[str], owner: str, lasting: int) -> None:
        now = self.clock.now
        free = {name for name in names if not self.model.lease(queue, name).live(now)}
        got = self.log.schedule.acquire(queue, names, owner, now=now, until=now + lasting)
        assert free == set(got)
        for name, token in got.items():
            lease = self.model.lease(queue, name)
            assert token > lease.token
            lease.token, lease.owner, lease.until = token, owner, now + lasting
            self.claims.append(Claim(queue, name, token, None))

    def _holds(self, claim: Claim) -> bool:
        lease = self.model.lease(claim.queue, claim.name)
        return lease.owner is not None and lease.token == claim.token

    @precondition(lambda self: self.claims)
    @rule(choice=st.integers(0, 10_000), lasting=st.integers(1, 60))
    def renew(self, choice: int, lasting: int) -> None:
        chosen = self.claims[choice % len(self.claims) :][:2]
        lost = [claim for claim in chosen if not self._holds(claim)]
        until = self.clock.now + lasting
        assert lost == self.log.schedule.renew(chosen, until=until)
        for claim in chosen:
            if claim not in lost:
                self.model.lease(claim.queue, claim.name).until = until

    @precondition(lambda self: self.claims)
    @rule(choice=st.integers(0, 10_000), keep=st.booleans(), at=st.one_of(st.none(), st.integers(NOON, NOON + 200)))
    def release(self, choice: int, keep: bool, at: Micros | None) -> None:
        claim = self.claims[choice % len(self.claims)]
        self.log.schedule.release([claim], at, keep_wake=keep)
        if self._holds(claim):
            lease = self.model.lease(claim.queue, claim.name)
            lease.owner = None
            if not keep:
                lease.wake_at = at

    @rule(owner=st.sampled_from(_OWNERS))
    def evict(self, owner: str) -> None:
        held = [lease for lease in self.model.leases.values() if lease.owner == owner]
        assert len(held) == self.log.schedule.evict(owner)
        for lease in held:
            lease.owner = None

    @rule(length=st.integers(1, 70))
    def time_passes(self, length: int) -> None:
        self.clock.advance(length)

    @rule(stream=st.sampled_from(_STREAMS), snapshot=st.builds(Snapshot, st.integers(0, 5), st.sampled_from("fg"), st.binary(max_size=3)))
    def snapshot(self, stream: str, snapshot: Snapshot) -> None:
        self.log.snapshots.save(stream, snapshot)
        old = self.model.snapshots.get(stream)
        if old is None or old.fingerprint != snapshot.fingerprint or old.version <= snapshot.version:
            self.model.snapshots[stream] = snapshot
        assert self.model.snapshots == self.log.snapshots.load(_STREAMS)

    @rule(name=st.sampled_from("xy"), position=st.integers(1, 50))
    def checkpoint(self, name: str, position: int) -> None:
        self.log.checkpoints.save(name, position)
        self.model.checkpoints[name] = max(position, self.model.checkpoints.get(name, 0))
        assert self.model.checkpoints == self.log.checkpoints.all()

    @invariant()
    def the_same_log(self) -> None:
        if not hasattr(self, "model"):
            return
        assert [self.model.head(stream) for stream in _STREAMS] == [self.log.head(stream) for stream in _STREAMS]
        assert [self.model.next_wake(queue) for queue in _QUEUES] == [self.log.schedule.next_wake(queue) for queue in _QUEUES]
        assert {lease.owner for lease in self.model.leases.values() if lease.owner is not None} == self.log.schedule.owners()


def log_machine(of: StoreMaker) -> type[RuleBasedStateMachine]:
    """The state machine for one store; hand it to ``hypothesis.stateful.run_state_machine_as_test``."""
    return type(f"LogMachineOf{of.name.title()}", (LogMachine,), {"maker": of})
