"""A sound log is found sound, and whatever a hand changed in it is found, with the first bad event of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from intentlog.agents import facts
from intentlog.agents.streams import Folder
from intentlog.eventlog.log import Snapshot
from intentlog.replay import state_at
from intentlog.replay.verify import FaultKind, StreamReport, verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying
from tests.stores import Store

APP = app_of(paying)


@pytest.fixture
def kept(shared_url: str) -> Iterator[World]:
    world = World(shared_url)
    world.story(APP, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    yield world
    world.log.close()


Edit = Callable[..., None]


@pytest.fixture
def edit(shared_store: Store, shared_url: str) -> Edit:
    def run(sql: str, *values: Any) -> None:
        assert 1 <= shared_store.edit(shared_url, sql, *values)

    return run


def report(world: World, app: Any = APP) -> StreamReport:
    (found,) = verify_all(world.log, app)
    return found


def faults(world: World, app: Any = APP) -> list[tuple[FaultKind, int]]:
    return [(each.kind, each.version) for each in report(world, app).faults.values()]


def data_of(world: World, version: int) -> bytes:
    return next(iter(world.log.read(STREAM, after=version - 1, limit=1))).data


def rewrite(world: World, edit: Edit, version: int, change: Callable[[Any], Any]) -> None:
    stored = next(iter(world.log.read(STREAM, after=version - 1, limit=1)))
    kind, schema, blob = APP.codec.encode(change(APP.codec.decode_stored(stored)))
    edit("UPDATE events SET type = ?, schema = ?, data = ? WHERE version = ?", kind, schema, blob, version)


def test_a_log_nobody_touched_is_sound(kept):
    found = report(kept)
    assert (True, 22, 0, [], "") == (found.sound, found.events, found.unchecked, found.open_intents, found.snapshot_ignored)


def test_without_the_app_users_events_are_counted_and_not_checked(kept):
    found = report(kept, None)
    assert (True, 22, 4) == (found.sound, found.events, found.unchecked)


def test_a_missing_version_is_found(kept, edit):
    edit("DELETE FROM events WHERE version IN (4, 15, 16)")
    found = report(kept).faults[FaultKind.HOLE]
    assert (5, 2, "version 5 follows 3: 4 is missing") == (found.version, found.count, found.text)


def test_versions_in_another_order_than_positions_are_found(kept, edit):
    edit("UPDATE events SET version = 99 WHERE version = 3")
    edit("UPDATE events SET version = 3 WHERE version = 4")
    edit("UPDATE events SET version = 4 WHERE version = 99")
    assert (FaultKind.ORDER, 4) in faults(kept)


def test_bytes_that_are_no_event_are_found(kept, edit):
    edit("UPDATE events SET data = ? WHERE version = 2", b"\xc1")
    assert [(FaultKind.UNDECODABLE, 2)] == faults(kept)
    assert [(FaultKind.UNDECODABLE, 2)] == faults(kept, None)


def test_a_users_event_that_is_no_message_is_found_without_the_app_too(kept, edit):
    edit("UPDATE events SET data = ? WHERE version = 3", b"\xc1")
    assert [(FaultKind.UNDECODABLE, 3)] == faults(kept, None)


def test_a_type_nobody_knows_is_found_with_the_app(kept, edit):
    edit("UPDATE events SET type = 'refund.unheard_of' WHERE version = 3")
    assert (FaultKind.UNDECODABLE, 3) in faults(kept)


def test_bytes_that_mean_the_same_but_are_not_canonical_are_found(kept, edit):
    data = data_of(kept, 10)
    assert b"\xa6output" in data
    edit("UPDATE events SET data = ? WHERE version = 10", data.replace(b"\xa6output", b"\xd9\x06output"))
    assert [(FaultKind.NOT_CANONICAL, 10)] == faults(kept)


def test_a_changed_prompt_does_not_fit_its_digest(kept, edit):
    data = data_of(kept, 2)
    edit("UPDATE events SET data = ? WHERE version = 2", data.replace(b"Refund 4200", b"Refund 4300"))
    assert [(FaultKind.DIGEST, 2)] == faults(kept) == faults(kept, None)


def test_a_changed_argument_does_not_fit_its_digest(kept, edit):
    rewrite(kept, edit, 5, lambda staged: attrs.evolve(staged, args={**staged.args, "cents": 9}))
    assert [(FaultKind.DIGEST, 5)] == faults(kept)


def test_an_intent_under_another_id_is_found(kept, edit):
    rewrite(kept, edit, 5, lambda staged: attrs.evolve(staged, step=3))
    assert [(FaultKind.IDENTITY, 5)] == faults(kept)


def test_a_second_outcome_is_found(kept, edit):
    settled = APP.codec.decode(*next((s.type, s.schema, s.data) for s in kept.log.read(STREAM) if s.version == 8))
    rewrite(kept, edit, 9, lambda event: settled)
    assert {FaultKind.SETTLED_TWICE: 9, FaultKind.IMPOSSIBLE: 9} == dict(faults(kept))


def test_a_fault_names_no_rule_of_the_house(kept, edit):
    settled = APP.codec.decode(*next((s.type, s.schema, s.data) for s in kept.log.read(STREAM) if s.version == 8))
    rewrite(kept, edit, 9, lambda event: settled)
    asked = APP.codec.decode(*next((s.type, s.schema, s.data) for s in kept.log.read(STREAM) if s.version == 2))
    rewrite(kept, edit, 3, lambda event: asked)
    texts = [fault.text for fault in report(kept).faults.values()]
    assert (True, False) == (any("the first one wins" in text for text in texts), any("S-" in text for text in texts))


def test_a_history_that_no_run_can_have_written_is_found(kept, edit):
    rewrite(kept, edit, 3, lambda event: facts.TimerFired(0, "timer-0-1", 1))
    assert [(FaultKind.IMPOSSIBLE, 3)] == faults(kept)


def test_intents_without_an_outcome_are_listed(world):
    world.send(APP, RefundAsked("o-1", 1))
    world.run(APP, effector=False)
    found = report(world)
    (waiting,) = found.open_intents
    assert (True, STREAM, 5, "refund", 0) == (found.sound, waiting.stream, waiting.version, waiting.tool, waiting.attempts)


def snapshot_of(world: World, version: int) -> tuple[Folder, Snapshot]:
    folder = Folder(APP.definitions["accounts"])
    return folder, folder.snapshot(state_at(world.log, APP, STREAM, version))


def test_a_snapshot_that_is_the_fold_is_sound(kept):
    kept.log.snapshots.save(STREAM, snapshot_of(kept, 12)[1])
    assert [] == faults(kept)


def test_a_snapshot_that_is_not_the_fold_is_found(kept):
    _, snapshot = snapshot_of(kept, 12)
    kept.log.snapshots.save(STREAM, attrs.evolve(snapshot, version=14))
    found = report(kept).faults[FaultKind.SNAPSHOT]
    assert (14, True) == (found.version, found.text.startswith("at run."))


def test_a_snapshot_of_other_code_is_ignored_and_said_to_be(kept):
    _, snapshot = snapshot_of(kept, 12)
    kept.log.snapshots.save(STREAM, attrs.evolve(snapshot, fingerprint="other", data=b"x"))
    found = report(kept)
    assert (True, "it was made by other folding code") == (found.sound, found.snapshot_ignored)


def test_a_snapshot_that_cannot_be_read_is_found(kept):
    _, snapshot = snapshot_of(kept, 12)
    kept.log.snapshots.save(STREAM, attrs.evolve(snapshot, data=b"\xc1"))
    assert [(FaultKind.SNAPSHOT, 12)] == faults(kept)
