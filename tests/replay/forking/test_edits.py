"""What may be changed in a history, and what an edit that does not fit is answered with."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from intentlog.agents import facts
from intentlog.agents.intents import input_event_id
from intentlog.agents.sending import json_input
from intentlog.eventlog.events import StoredEvent
from intentlog.replay.errors import ForkRefused
from intentlog.replay.forking.edits import Edits, edited, parse_edit, parse_inserts
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying


@pytest.fixture
def told(world: World) -> World:
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    return world


def pieces(world: World, *edits: tuple[int, str], upto: int = 10, drops: tuple[int, ...] = (), inserts: str = "[]") -> Any:
    made = Edits(tuple(parse_edit(*each) for each in edits), drops, parse_inserts(inserts))
    return edited(app_of(paying).codec, list(world.log.read(STREAM)), upto, made)


def test_an_edit_changes_the_one_field(told):
    codec = app_of(paying).codec
    found, first = pieces(told, (0, "cents=5"), (8, "value=re_x"))
    assert (0, 11) == (first, len(found))
    received = codec.decode(found[0].type, found[0].schema, found[0].data)
    assert RefundAsked("o-1", 5) == codec.decode(received.type, received.schema, received.payload)
    assert "re_x" == codec.decode(found[8].type, found[8].schema, found[8].data).value
    changed = [place for place, (piece, event) in enumerate(zip(found, told.log.read(STREAM), strict=True)) if piece.data != event.data]
    assert [0, 8] == changed


def test_bytes_stay_as_they_are_where_the_value_is_the_same(told):
    found, _ = pieces(told, (0, "cents=4200"), (2, "response.text=yes"))
    assert [event.data for event in told.log.read(STREAM)] == [piece.data for piece in found]


def test_what_is_dropped_is_gone_and_what_is_inserted_is_there(told):
    found, first = pieces(told, drops=(7,), inserts='[{"type": "signal.received", "fields": {"signal_id": "s", "name": "n"}, "before": 2}]')
    assert (2, 11, "signal.received") == (first, len(found), found[2].type)
    assert [0, 1, -1, 2, 3, 4, 5, 6, 8, 9, 10] == [piece.origin for piece in found]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edits": [(3, "cents=1")]}, "decided by the agent's code"),
        ({"edits": [(5, "args.cents=1")]}, "decided by the agent's code"),
        ({"drops": (10,)}, "decided by the agent's code"),
        ({"edits": [(2, "request.model=x")]}, "what the code asked for"),
        ({"edits": [(99, "cents=1")]}, "no version 99"),
        ({"edits": [(0, "euros=1")]}, "there is no 'euros'; there is cents, order_id"),
        ({"edits": [(0, "cents=many")]}, "does not fit input.received"),
        ({"edits": [(8, "status=7")]}, "does not fit intent.settled"),
        ({"inserts": '{"type": "refund.unknown"}'}, "refund.unknown"),
        ({"inserts": '{"type": "refund.asked", "fields": {"cents": 1}}'}, "cannot be inserted"),
        ({"inserts": '{"type": "activation.completed", "fields": {"seq": 0, "now": 0, "step": 0, "index": 0, "output": null}}'}, "code decides that"),
        ({"inserts": '{"type": "signal.received", "fields": {"signal_id": "s", "name": "n"}, "before": 99}'}, "no version 99"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(told, change, said):
    with pytest.raises(ForkRefused, match=said):
        pieces(told, *change.pop("edits", []), **change)


@pytest.mark.parametrize(
    ("edit", "way"),
    [
        ((2, 'response.text={"labels": ["a"]}'), """--edit 2 'response.text="{\\"labels\\": [\\"a\\"]}"'"""),
        ((2, "response.text=5"), """--edit 2 'response.text="5"'"""),
        ((0, "order_id=true"), """--edit 0 'order_id="true"'"""),
        ((0, "payload.order_id=null"), """--edit 0 'payload.order_id="null"'"""),
    ],
)
def test_json_where_a_text_stands_is_refused_with_the_edit_that_says_it_as_text(told, edit, way):
    with pytest.raises(ForkRefused, match="A text stands there") as refused:
        pieces(told, edit)
    assert str(refused.value).endswith(way)
    version, text = shlex.split(way)[1:]
    found, _ = pieces(told, (int(version), text))
    assert edit[1].partition("=")[2] in str(app_of(paying).codec.tree(found[edit[0]].data))


def test_a_value_that_does_not_fit_where_no_text_stands_has_no_word_about_quoting(told):
    with pytest.raises(ForkRefused) as refused:
        pieces(told, (0, "cents=[1]"))
    assert "quote" not in str(refused.value)


def plain_input(value: Any, written: str) -> tuple[Any, Any]:
    """The codec, and the event of an input that is a plain value, written as ``eventlog send`` or as ``send`` in Python does."""
    codec = app_of(paying).codec
    if written == "json":
        _, new = json_input(codec, "accounts", "acct-42", "", json.dumps(value), "in-1")
    else:
        fact = facts.InputReceived("in-1", "", 0, "msgpack", codec.encode_value(value, Any))
        new = codec.stage(fact, event_id=input_event_id("in-1"))
    return codec, StoredEvent(1, STREAM, 0, new.event_id, new.type, new.schema, new.data, 0, new.correlation, None)


def payload_of(codec: Any, piece: Any) -> Any:
    received = codec.decode(piece.type, piece.schema, piece.data)
    return json.loads(received.payload) if received.format == "json" else codec.tree(received.payload)


@pytest.mark.parametrize("written", ["json", "msgpack"])
@pytest.mark.parametrize("before", [3, "three", [1, 2], {"a": 1}, None, True])
@pytest.mark.parametrize(("said", "after"), [("4", 4), ("four", "four"), ("[4]", [4]), ("null", None), ('{"b": {"c": 1}}', {"b": {"c": 1}})])
def test_an_input_is_set_whole_whatever_it_was(written, before, said, after):
    codec, stored = plain_input(before, written)
    (piece,), first = edited(codec, [stored], 0, Edits((parse_edit(0, f"payload={said}"),)))
    assert (0, after, stored.event_id) == (first, payload_of(codec, piece), piece.event_id)


def test_a_part_of_a_plain_input_is_reached_by_its_place():
    codec, stored = plain_input([{"cents": 1}, 2], "json")
    (piece,), _ = edited(codec, [stored], 0, Edits((parse_edit(0, "payload.0.cents=7"),)))
    assert [{"cents": 7}, 2] == payload_of(codec, piece)


@pytest.mark.parametrize("path", ["cents", "payload.cents"])
def test_a_field_of_an_input_that_has_none_is_refused_with_the_way_to_set_it_whole(path):
    codec, stored = plain_input(3, "json")
    with pytest.raises(ForkRefused, match=r"the input is 3 and has no fields\. Set it whole: --edit 0 payload=VALUE"):
        edited(codec, [stored], 0, Edits((parse_edit(0, f"{path}=4"),)))


def test_a_typed_input_is_set_whole_as_far_as_it_fits_its_class(told):
    codec = app_of(paying).codec
    (piece, *_), _ = pieces(told, (0, 'payload={"order_id": "o-9", "cents": 3}'))
    received = codec.decode(piece.type, piece.schema, piece.data)
    assert RefundAsked("o-9", 3) == codec.decode(received.type, received.schema, received.payload)
    with pytest.raises(ForkRefused, match=r"does not fit input\.received"):
        pieces(told, (0, "payload=4"))


@pytest.mark.parametrize("text", ["cents", "=5", "a..b=1"])
def test_an_edit_without_a_field_is_none(text):
    with pytest.raises(ForkRefused, match="is no edit"):
        parse_edit(0, text)


@pytest.mark.parametrize("text", ["{", "[1]", '{"fields": {}}', '{"type": "x", "more": 1}', '{"type": "x", "before": "soon"}'])
def test_what_is_no_insert_is_told_what_one_looks_like(text):
    with pytest.raises(ForkRefused):
        parse_inserts(text)
