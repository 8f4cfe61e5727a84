"""What is redacted is nowhere in a bundle, whatever way its path is written, and a replay does not take it for a difference."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from intentlog.agents import App
from intentlog.replay import Verdict, replay_stream
from intentlog.replay.bundles import open_bundle, parse_redactions, write_bundle
from intentlog.replay.errors import Unredactable
from intentlog.replay.searching import Search, search
from intentlog.replay.verify import verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

KEY = b"k" * 32


@pytest.fixture
def app() -> App:
    return app_of(paying)


def redacted(world: World, app: App, out: Path, *paths: str) -> Any:
    write_bundle(world.log, [STREAM], out, app, paths, key=KEY)
    return open_bundle(out)


def test_a_redacted_value_is_nowhere_in_the_bundle(world, app, tmp_path):
    world.story(app, RefundAsked("secret-order-1", 4200))
    every = ["order_id", "args.order_id", "request.messages.*.content", "value", "receipt", "activation.completed:output"]
    opened = redacted(world, app, tmp_path / "r.bundle", *every)
    assert not any(b"secret-order-1" in event.data for event in opened.read_all())
    assert tuple(every) == opened.manifest.redactions
    assert opened.redacted[STREAM] == {event.version for event, old in zip(opened.read(STREAM), world.log.read(STREAM), strict=True) if event.data != old.data}
    assert opened.snapshots.load([STREAM]) == {}


def test_digests_of_what_was_redacted_go_with_it(world, app, tmp_path):
    world.story(app, RefundAsked("o-1", 4200))
    opened = redacted(world, app, tmp_path / "r.bundle", "intent.staged:args.order_id")
    (old,), (new,) = ([app.codec.decode_stored(each) for each in log.read(STREAM) if each.type == "intent.staged"] for log in (world.log, opened))
    assert (old.tool, old.args["cents"]) == (new.tool, new.args["cents"])
    assert (32, True, "redacted:") == (len(new.digest), old.digest != new.digest, new.args["order_id"][:9])


def test_equal_values_have_equal_marks_and_another_key_other_ones(world, app, tmp_path):
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-1", 7))
    opened = redacted(world, app, tmp_path / "r.bundle", "refund.asked:order_id")
    marks = [app.codec.decode_stored(each).order_id for each in opened.read(STREAM) if each.type == "refund.asked"]
    assert 1 == len(set(marks))
    write_bundle(world.log, [STREAM], tmp_path / "other.bundle", app, ["refund.asked:order_id"])
    other = [app.codec.decode_stored(each).order_id for each in open_bundle(tmp_path / "other.bundle").read(STREAM) if each.type == "refund.asked"]
    assert set(marks).isdisjoint(other)


@pytest.mark.parametrize("value", ["", "x", "a" * 5_000, "é"])
def test_a_mark_does_not_tell_how_long_the_value_was(world, app, tmp_path, value):
    world.story(app, RefundAsked(value, 4200))
    opened = redacted(world, app, tmp_path / "r.bundle", "refund.asked:order_id", "output")
    (asked,) = (app.codec.decode_stored(each) for each in opened.read(STREAM) if each.type == "refund.asked")
    assert re.fullmatch("redacted:[0-9a-f]{16}", asked.order_id)


def test_replaying_what_was_redacted_cannot_be_done_and_is_no_divergence(world, app, tmp_path):
    world.story(app, RefundAsked("o-1", 4200))
    found = replay_stream(redacted(world, app, tmp_path / "r.bundle", "refund.asked:order_id"), app, STREAM)
    assert (Verdict.CANNOT, None) == (found.verdict, found.divergence)
    assert "redacted" in found.reason
    reports = list(verify_all(open_bundle(tmp_path / "r.bundle"), app))
    assert [(True, 2)] == [(report.sound, report.unchecked) for report in reports]
    harmless = replay_stream(redacted(world, app, tmp_path / "h.bundle", "intent.attempted:effector"), app, STREAM)
    assert Verdict.SAME is harmless.verdict


def test_every_path_that_search_shows_can_be_redacted(world, app, tmp_path):
    world.story(app, RefundAsked("secret-1", 4200))
    world.send(app, RefundAsked("secret-1", 7))
    shown = sorted({hit.place for hit in search(world.log, Search(text="secret-1"), app)})
    assert {"payload.order_id", "request.messages[0].content", "args.order_id", "order_id"} <= set(shown)
    for number, path in enumerate(shown):
        write_bundle(world.log, [STREAM], tmp_path / f"{number}.bundle", app, [path])
    left = list(search(redacted(world, app, tmp_path / "all.bundle", *shown), Search(text="secret-1")))
    assert [] == [(hit.stored.version, hit.place) for hit in left]


@pytest.mark.parametrize("kind", ["", "input.received:", "refund.asked:"])
@pytest.mark.parametrize("path", ["payload.order_id", "*.order_id", "payload.order*", "payload['order_id']", "pay*.*_id"])
def test_a_field_of_an_input_has_one_meaning_however_it_is_written(world, app, tmp_path, kind, path):
    world.send(app, RefundAsked("secret-1", 7))
    opened = redacted(world, app, tmp_path / "r.bundle", kind + path)
    (stored,) = opened.read(STREAM)
    received = app.codec.decode_stored(stored)
    asked = app.codec.decode(received.type, received.schema, received.payload)
    assert ("redacted:", 7) == (asked.order_id[:9], asked.cents)


@pytest.mark.parametrize("path", ["order_id[", "[0", "a.[0]", "a[x]", ".a", "a."])
def test_what_is_no_path_is_told_what_one_looks_like(path):
    with pytest.raises(Unredactable, match="is no path to redact"):
        parse_redactions([path])


@pytest.mark.parametrize("path", ["nothing.here", "payload.order", "*.order", "refund.asked:order", "refund.asked:", "", "a..b"])
def test_a_path_that_names_nothing_is_an_error(world, app, tmp_path, path):
    world.story(app, RefundAsked("o-1", 4200))
    with pytest.raises(Unredactable):
        write_bundle(world.log, [STREAM], tmp_path / "r.bundle", app, [path])
    assert not (tmp_path / "r.bundle").exists()
