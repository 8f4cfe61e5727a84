"""A bundle says what its log says, opens only whole, and runs nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from intentlog.agents import Aggregate, App, Complete, Suspend, applies
from intentlog.agents.streams import Folder
from intentlog.eventlog.errors import TerminalError
from intentlog.eventlog.events import StoredEvent
from intentlog.eventlog.versions import ANY
from intentlog.replay import StateCheck, Verdict, replay_all, replay_stream, state_at
from intentlog.replay.bundles import open_bundle, write_bundle
from intentlog.replay.bundles.layout import FORMAT, MANIFEST, VERSION, Manifest
from intentlog.replay.bundles.log import BundleLog
from intentlog.replay.bundles.seams import check_nothing_else
from intentlog.replay.errors import BrokenBundle, BrokenHistory, BundleIsReadOnly, NoSuchStream, ReplayError
from intentlog.replay.forking.going_on import what_if
from intentlog.replay.story import story
from intentlog.replay.verify import verify_all
from tests.replay.edited_bundles import rewritten, with_cell, with_events
from tests.replay.histories import moves, played
from tests.replay.world import STREAM, Account, RefundAsked, RefundPaid, World, app_of, paying, refund, unanswered


@pytest.fixture
def app() -> App:
    return app_of(paying)


@pytest.fixture
def bundle(world: World, app: App, tmp_path: Path) -> Path:
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.story(app, RefundAsked("o-3", 1), key="acct-43")
    write_bundle(world.log, [STREAM, "accounts-acct-43"], tmp_path / "case.bundle", app)
    return tmp_path / "case.bundle"


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=moves)
def test_a_bundle_replays_verifies_and_reads_as_its_log(happened, tmp_path_factory):
    app = app_of(paying)
    world = played(app, happened)
    path = tmp_path_factory.mktemp("bundled") / "case.bundle"
    names = list(world.log.streams())
    write_bundle(world.log, names, path, app)
    opened = open_bundle(path)
    asked = app_of(paying, unanswered())
    assert names == list(opened.streams())
    assert list(world.log.read_all()) == list(opened.read_all())
    replayed = list(replay_all(opened, asked))
    assert list(replay_all(world.log, asked)) == [attrs.evolve(each, state=StateCheck.NOT_COMPARED) for each in replayed]
    assert {StateCheck.COMPARED} == {each.state for each in replayed}
    assert list(verify_all(world.log, app)) == list(verify_all(opened, app))
    for name in names:
        assert state_at(world.log, app, name) == state_at(opened, app, name)
        assert list(story(world.log, name, app)) == list(story(opened, name, app))
    world.log.close()


def test_reads_of_every_kind_are_those_of_the_log(world, app, bundle):
    opened = open_bundle(bundle)
    for ask in (
        lambda log: list(log.read(STREAM, after=2, upto=5, payloads=False)),
        lambda log: list(log.read(STREAM, limit=3, backwards=True)),
        lambda log: [row for rows in log.rows(STREAM, after=4, upto=9) for row in rows],
        lambda log: log.rows_of({STREAM: 12, "accounts-acct-43": -1, "accounts-none": 3}),
        lambda log: list(log.read_all(after=4, upto=30, types=["intent.staged"], categories=["accounts"], limit=2)),
        lambda log: (log.head(STREAM), log.head("accounts-none"), log.last_position(), list(log.streams("accounts-acct-43"))),
    ):
        assert ask(world.log) == ask(opened)


def test_a_bundle_takes_no_writes(bundle):
    opened = open_bundle(bundle)
    with pytest.raises(BundleIsReadOnly) as refused:
        opened.append(STREAM, [], ANY)
    assert isinstance(refused.value, TerminalError)
    assert "eventlog fork" in str(refused.value)


def test_the_same_history_gives_the_same_file(world, app, bundle, tmp_path):
    write_bundle(world.log, [STREAM, "accounts-acct-43"], tmp_path / "again.bundle", app)
    assert bundle.read_bytes() == (tmp_path / "again.bundle").read_bytes()


def test_the_manifest_tells_schemas_and_code(bundle):
    manifest = open_bundle(bundle).manifest
    assert {"order_id": "str", "cents": "int"} == manifest.schemas["refund.asked"]["fields"]
    assert [1] == manifest.types["refund.asked"]
    assert {"accounts"} == set(manifest.code)


def test_a_bundle_has_the_fold_at_each_streams_end_when_it_is_made_with_the_app(world, app, bundle):
    opened = open_bundle(bundle)
    for name in opened.streams():
        snapshot = opened.snapshots.load([name])[name]
        folder = Folder(app.definitions["accounts"])
        assert (world.log.head(name), folder.fingerprint) == (snapshot.version, snapshot.fingerprint)
        assert state_at(world.log, app, name).state == folder.restore(name, snapshot).state


class Begun(Account):
    refunded_cents: int = 1


@pytest.mark.parametrize("ends_with", ["activation.completed", "intent.staged", "intent.attempted", "intent.settled", "input.received"])
def test_a_changed_default_is_found_against_a_bundle_wherever_its_history_ends(world, tmp_path, ends_with):
    async def silent(ctx, asked: RefundAsked):
        if not ctx.is_resume:
            ctx.act(refund, order_id=asked.order_id, cents=asked.cents)
            return Suspend(timeout=timedelta(minutes=5))
        return Complete()

    app = app_of(silent)
    world.story(app, RefundAsked("o-1", 4200))
    last = {"intent.staged": "activation.suspended"}.get(ends_with, ends_with)
    cut = next(event.version for event in world.log.read(STREAM, backwards=True) if event.type == last)
    write_bundle(holding(list(world.log.read(STREAM, upto=cut))), [STREAM], tmp_path / "cut.bundle", app)
    opened = open_bundle(tmp_path / "cut.bundle")
    same, found = (replay_stream(opened, code, STREAM) for code in (app, app_of(silent, state=Begun)))
    assert (Verdict.SAME, StateCheck.COMPARED) == (same.verdict, same.state)
    assert found.divergence is not None
    assert (Verdict.DIVERGED, "state.refunded_cents", cut) == (found.verdict, found.divergence.field, found.divergence.version)


def test_a_history_that_the_app_cannot_fold_is_bundled_with_the_snapshot_of_the_log(world, app, tmp_path):
    class Angry(Aggregate):
        @applies(RefundPaid)
        def _(self, e: RefundPaid) -> Angry:
            raise ValueError("no")

    world.story(app, RefundAsked("o-1", 4200))
    kept = Folder(app.definitions["accounts"]).snapshot(state_at(world.log, app, STREAM, 2))
    world.log.snapshots.save(STREAM, kept)
    write_bundle(world.log, [STREAM], tmp_path / "angry.bundle", app_of(paying, state=Angry))
    write_bundle(world.log, [STREAM], tmp_path / "without.bundle")
    assert [kept, kept] == [open_bundle(tmp_path / f"{name}.bundle").snapshots.load([STREAM])[STREAM] for name in ("angry", "without")]


def holding(events: Any) -> BundleLog:
    """A log of just these events, as they are."""
    return BundleLog("here", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), {STREAM: events}, {})


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ([0, 1, 2, 3, 5, 6], "has no version 4, though it goes on with 5"),
        ([0, 1, 2, 6], "has no versions 3 to 5, though it goes on with 6"),
        ([1, 2], "has no version 0, though it goes on with 1"),
        ([0, 1, 1, 2], "has version 1 twice"),
    ],
)
def test_a_stream_with_a_hole_is_neither_bundled_nor_forked(world, app, tmp_path, versions, said):
    world.story(app, RefundAsked("o-1", 4200))
    events = list(world.log.read(STREAM))
    log = holding([events[version] for version in versions])
    with pytest.raises(BrokenHistory, match=f"{STREAM} {said}"):
        write_bundle(log, [STREAM], tmp_path / "hole.bundle", app)
    with pytest.raises(BrokenHistory, match=f"{STREAM} {said}.*cannot be forked"):
        what_if(log, app, STREAM)
    assert not (tmp_path / "hole.bundle").exists()


def test_what_a_stream_does_not_have_cannot_be_bundled(world, app, bundle, tmp_path):
    with pytest.raises(NoSuchStream):
        write_bundle(world.log, ["accounts-none"], tmp_path / "none.bundle")
    with pytest.raises(ReplayError, match="there already"):
        write_bundle(world.log, [STREAM], bundle)
    assert not (tmp_path / "none.bundle").exists()


def test_opening_imports_neither_the_app_nor_the_effector(bundle):
    code = (
        "import sys; from intentlog.replay.sources import open_source; from intentlog.replay.story import story\n"
        f"log = open_source({str(bundle)!r}); assert list(story(log, {STREAM!r}))\n"
        "print([name for name in sys.modules if name.startswith(('tests', 'intentlog.effector')) or name in ('pickle', 'sqlite3')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout


# ── files that are no whole bundle ──────────────────────────────────────────────────────────────────────────────────


def test_a_bundle_cut_anywhere_does_not_open(bundle, tmp_path):
    whole = bundle.read_bytes()
    cut = tmp_path / "cut.bundle"
    for length in range(0, len(whole), max(len(whole) // 60, 1)):
        cut.write_bytes(whole[:length])
        with pytest.raises(BrokenBundle, match="cut"):
            open_bundle(cut)


def test_a_flipped_bit_is_found_or_changes_nothing_that_is_read(bundle, tmp_path):
    whole = bundle.read_bytes()
    expected = list(open_bundle(bundle).read_all())
    flipped = tmp_path / "flipped.bundle"
    for place in range(0, len(whole), max(len(whole) // 200, 1)):
        flipped.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert expected == list(open_bundle(flipped).read_all())
        except BrokenBundle:
            pass


@pytest.mark.parametrize("where", ["before", "between", "in front of the list", "behind"])
def test_bytes_that_belong_to_no_member_are_found(bundle, where):
    whole = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        listed = archive.start_dir
        second = sorted(info.header_offset for info in archive.infolist())[1]
    place = {"before": 0, "between": second, "in front of the list": listed, "behind": len(whole)}[where]
    bundle.write_bytes(whole[:place] + b"more" + whole[place:])
    with pytest.raises(BrokenBundle, match=r"edited|cut"):
        open_bundle(bundle)


def test_bytes_behind_a_bundle_are_told_with_their_place(bundle):
    size = bundle.stat().st_size
    with bundle.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(BrokenBundle, match=f"was edited: at byte {size:,} it holds something"):
        open_bundle(bundle)


def test_a_bundle_of_more_members_than_a_small_zip_counts_has_nothing_else(tmp_path):
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w") as archive:
        for place in range(0x10001):
            archive.writestr(zipfile.ZipInfo(f"streams/{place}"), b"")
        archive.comment = b"0" * 64
    with zipfile.ZipFile(many) as archive:
        check_nothing_else(many, archive)


def manifest_with(**changes: Any) -> Any:
    def change(members: dict[str, bytes]) -> None:
        members[MANIFEST] = json.dumps(json.loads(members[MANIFEST]) | changes).encode()

    return change


@pytest.mark.parametrize(
    ("change", "honest", "said"),
    [
        (lambda members: {name: blob for name, blob in members.items() if name != MANIFEST}, True, "without a manifest.json"),
        (lambda members: {**members, "../evil": b"x"}, True, "'../evil' is not listed"),
        (lambda members: {name: blob for name, blob in members.items() if name != "streams/1"}, True, "'streams/1' is missing"),
        (lambda members: {**members, "streams/0": members["streams/1"]}, True, "edited or damaged"),
        (lambda members: members, False, "was edited"),
        (manifest_with(format="other"), True, "says nothing of"),
        (manifest_with(version=2), True, "Install the release"),
        (manifest_with(streams="many"), True, "cannot be read"),
        (lambda members: {MANIFEST: b"[" * 100_000}, True, "cannot be read|was cut"),
    ],
)
def test_an_edited_bundle_is_told_from_a_whole_one(bundle, change, honest, said):
    with pytest.raises(BrokenBundle, match=said):
        open_bundle(rewritten(bundle, change, honest=honest))


def test_bytes_that_are_no_events_are_refused(bundle):
    with pytest.raises(BrokenBundle, match="does not hold 1 events of 9 columns"):
        open_bundle(rewritten(bundle, with_events(lambda _: [[1, 2, 3]])))


@pytest.mark.parametrize(
    ("place", "cell"), [(place, cell) for place in range(9) for cell in ([1], {"a": 1}, msgspec.msgpack.Ext(5, b"x"))] + [(0, 2**63), (1, 2**63)]
)
def test_columns_that_no_log_holds_are_refused(bundle, place, cell):
    with pytest.raises(BrokenBundle, match=r"for a column, which no log holds|has an event without a place"):
        open_bundle(rewritten(bundle, with_cell(3, place, cell)))


def test_other_files_are_no_bundles(tmp_path):
    (tmp_path / "foreign.bundle").write_bytes(b"SQLite format 3\x00" + bytes(500))
    with pytest.raises(BrokenBundle, match="is no bundle"):
        open_bundle(tmp_path / "foreign.bundle")
    with pytest.raises(BrokenBundle, match="There is no bundle"):
        open_bundle(tmp_path / "none.bundle")
    with pytest.raises(BrokenBundle, match="cannot be read"):
        open_bundle(tmp_path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(bundle, tmp_path):
    bomb = tmp_path / "bomb.bundle"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("streams/0", "w") as member:
        for _ in range(70):
            member.write(bytes(1 << 20))
    assert bomb.stat().st_size < 200_000
    with pytest.raises(BrokenBundle, match="no history packs that well"):
        open_bundle(bomb)
    with pytest.raises(BrokenBundle, match="at most 1,000 are read"):
        open_bundle(bundle, most_bytes=1_000)


def test_a_bundle_of_a_stream_that_somebody_goes_on_with_has_events_and_wake_up_of_one_moment(world, tmp_path, monkeypatch):
    app = app_of(paying)
    world.send(app, RefundAsked("o-1", 4200))
    moved: list[str] = []
    read = world.log.read

    def reading(stream: str, **options: Any) -> Iterator[StoredEvent]:
        found = list(read(stream, **options))
        if moved == ["with"] and not options:
            world.run(app)  # between the events and what stands beside them, a worker takes the turn
        if not options:
            moved.append("with")
        return iter(found)

    monkeypatch.setattr(world.log, "read", reading)
    write_bundle(world.log, [STREAM], tmp_path / "b.bundle", app)
    assert len(moved) > 1
    assert [True] == [report.sound for report in verify_all(open_bundle(tmp_path / "b.bundle"), app)]


def test_a_row_that_a_hand_was_at_is_bundled_as_it_is_and_told_by_verify(world, app, tmp_path):
    world.story(app, RefundAsked("o-1", 4200))
    odd = [event._replace(schema="x") if event.version == 3 else event for event in world.log.read(STREAM)]
    write_bundle(BundleLog("odd", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), {STREAM: odd}, {}), [STREAM], tmp_path / "b.bundle")
    opened = open_bundle(tmp_path / "b.bundle")
    assert odd == list(opened.read(STREAM))
    assert [False] == [report.sound for report in verify_all(opened)]


def test_an_interrupt_leaves_no_part_of_a_bundle_that_would_stand_in_the_way_of_the_next(world, tmp_path, monkeypatch):
    world.story(app_of(paying), RefundAsked("o-1", 4200))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "writestr", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_bundle(world.log, (STREAM,), tmp_path / "x.bundle")
    assert [] == list(tmp_path.glob("*.bundle"))
    write_bundle(world.log, (STREAM,), tmp_path / "x.bundle")
