"""A search finds what holds everything that was asked for, in the order of the log, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay.paths import parse_path
from intentlog.replay.searching import Search, search
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

APP = app_of(paying)


@pytest.fixture(scope="module")
def told():
    world = World()
    world.story(APP, RefundAsked("o-1", 4200), RefundAsked("Ö-2", 100))
    world.story(APP, RefundAsked("o-3", 1), key="acct-43")
    yield world
    world.log.close()


def found(world: World, **wanted) -> list[tuple[str, int]]:
    wanted["fields"] = tuple((parse_path(f"state.{path}")[1:], value) for path, value in wanted.get("fields", ()))
    return [(hit.stored.stream, hit.stored.version) for hit in search(world.log, Search(**wanted), APP)]


def versions(world: World, **wanted) -> list[int]:
    return [version for stream, version in found(world, **wanted) if stream == STREAM]


def test_a_text_is_found_in_payloads_prompts_answers_and_arguments(told):
    assert [0, 1, 2, 3, 5, 8, 9, 10] == versions(told, text="o-1")
    hit = next(search(told.log, Search(text="refund 4200"), APP))
    assert ("model_call.cached", "request.messages[0].content", True) == (hit.stored.type, hit.place, hit.excerpt.startswith("Refund 4200 for o-1"))


def test_capital_letters_are_meant_and_small_ones_are_not(told):
    assert [] == versions(told, text="REFUND 4200")
    assert versions(told, text="Refund 4200") == versions(told, text="refund 4200") == [2]
    assert versions(told, text="ö-2") == versions(told, text="Ö-2") != []


def test_numbers_are_found_though_they_are_no_text_in_the_bytes(told):
    assert [0, 3, 5, 9] == sorted(set(versions(told, text="4200")) & {0, 3, 5, 9})


def test_types_fields_keys_and_categories_narrow_it(told):
    assert [5, 16] == versions(told, types=("intent.staged",))
    assert [5] == versions(told, types=("intent.staged",), fields=(("args.cents", "4200"),))
    assert [5] == versions(told, fields=(("args.cents", "4200"), ("tool", "refund")))
    assert [] == versions(told, fields=(("args.cents", '"4200"'),))
    assert {"accounts-acct-43"} == {stream for stream, _ in found(told, keys=("*-43",))}
    assert [] == found(told, categories=("others",))


def test_a_range_narrows_it(told):
    third = next(iter(told.log.read("accounts-acct-43")))
    assert {"accounts-acct-43"} == {stream for stream, _ in found(told, after=third.position - 1)}
    assert {STREAM} == {stream for stream, _ in found(told, upto=third.position - 1)}
    assert {"accounts-acct-43"} == {stream for stream, _ in found(told, moment=third.recorded_at)}
    assert {STREAM} == {stream for stream, _ in found(told, until=third.recorded_at - 1)}


def test_bytes_that_are_not_ours_are_searched_as_far_as_they_are_text(world):
    world.log.append("x-1", [NewEvent(bytes(15) + bytes([n]), "odd", 1, data) for n, data in enumerate((b'{"a": "needle"}', b"a needle", b"\xff\xfe"))], ANY)
    assert [0, 1] == [hit.stored.version for hit in search(world.log, Search(text="needle"))]


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(max_size=6), max_size=6), wanted=st.text(min_size=1, max_size=3))
def test_a_text_is_found_wherever_it_stands(texts, wanted):
    log = open_log("memory://")
    codec = APP.codec
    events = [codec.stage(RefundAsked(text, 0), event_id=n.to_bytes(16, "big")) for n, text in enumerate(texts, 1)]
    if events:
        log.append("plain-x", events, ANY)
    small = wanted == wanted.lower()
    expected = [
        n for n, text in enumerate(texts) if wanted in (text.lower() if small else text) or wanted in "plain-x" or wanted in "refund.asked" or wanted == "0"
    ]
    assert expected == [hit.stored.version for hit in search(log, Search(text=wanted), APP)]
    log.close()
