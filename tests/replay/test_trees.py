"""The tree of a state in parts is the whole tree, and an event's fields stand beside its place and type."""

from __future__ import annotations

import attrs
import pytest

from intentlog.agents import Input, send
from intentlog.replay.fold import state_as_tree
from intentlog.replay.reports import tree_lines
from intentlog.replay.trees import RUN, EventTree, tree_of, whole
from intentlog.replay.walking import Walk
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 42), RefundAsked("o-2", 7))
    return world


def test_all_parts_together_are_the_whole_tree_at_every_version(told):
    for _, state in Walk(told.log, app_of(paying), STREAM).each():
        assert state_as_tree(state) == whole(tree_of(state))
        assert RUN == set(tree_of(state)["run"])


def test_an_activation_is_there_by_its_seq_and_no_other_text(told):
    walk = Walk(told.log, app_of(paying), STREAM, 4)
    activations = tree_of(walk.state)["run"]["activations"]
    assert (["0"], 1, True, False, False) == (list(activations), len(activations), "0" in activations, "x" in activations, 0 in activations)
    with pytest.raises(KeyError):
        activations["x"]


def test_an_event_has_its_place_and_its_fields(told):
    app = app_of(paying)
    walk = Walk(told.log, app, STREAM)
    event = EventTree(walk.row(3), app.codec)
    assert {
        "type": "refund.asked",
        "version": 3,
        "schema": 1,
        "time": "2025-11-29T09:14:01.000000+00:00",
        "fields": {"order_id": "o-1", "cents": 42},
        "order_id": "o-1",
        "cents": 42,
    } == dict(event)


def test_a_field_that_is_called_like_a_column_stands_under_fields(told):
    app = app_of(paying)
    event = EventTree(Walk(told.log, app, STREAM).row(0), app.codec)
    assert ("input.received", "refund.asked", {"order_id": "o-1", "cents": 42}) == (event["type"], event["fields"]["type"], event["payload"])


def test_a_payload_in_json_is_read_as_well(world):
    app = app_of(paying)
    send(app, world.log, Input("accounts", "acct-42", RefundAsked("o-1", 42), "in-1"))
    row = next(iter(world.log.rows(STREAM)))[0]
    received = app.codec.decode(*row[1:4])
    as_json = attrs.evolve(received, format="json", payload=b'{"order_id": "o-1", "cents": 42}')
    name, schema, encoded = app.codec.encode(as_json)
    assert {"order_id": "o-1", "cents": 42} == EventTree((0, name, schema, encoded, row[4], 0), app.codec)["payload"]


def test_what_cannot_be_decoded_shows_what_its_bytes_hold_or_nothing():
    codec = app_of(paying).codec
    assert {"a": 1} == EventTree((0, "of.nobody", 1, b"\x81\xa1a\x01", b"", 0), codec)["fields"]
    assert {} == EventTree((0, "of.nobody", 1, b"\xc1", b"", 0), codec)["fields"]


def test_nothing_and_what_is_empty_are_told_apart():
    lines = list(tree_lines({"nothing": None, "text": "", "items": (), "pairs": {}, "no": False, "zero": 0}, width=80))
    assert ["nothing  –", 'text     ""', "items    []", "pairs    {}", "no       false", "zero     0"] == lines
