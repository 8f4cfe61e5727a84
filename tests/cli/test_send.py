"""send: every way in, and every way not in."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import call, child

ORDER = '{"order_id": "o-1"}'


def events() -> list[dict]:
    return [json.loads(line) for line in call("tail", "--json", "-n", "1000").stdout.splitlines()]


def test_an_input_is_recorded_and_its_place_printed(shop):
    done = call("send", "orders", "k", "order.placed", ORDER, "--id", "one", "--json")
    assert (0, {"stream": "orders-k", "version": 0, "position": 1, "id": "one", "duplicate": False}) == (done.exit_code, json.loads(done.stdout))


@pytest.mark.parametrize("app", [(), ("--app", "shop:app")], ids=["without the app", "with it"])
def test_the_same_input_again_is_accepted_without_a_second_event(shop, app):
    call("send", "orders", "k", "order.placed", ORDER, "--id", "one", *app)
    done = call("send", "orders", "k", "order.placed", '{ "order_id" :"o-1"}', "--id", "one", *app)
    assert (0, True, 1) == (done.exit_code, "accepted before" in done.stdout, len(events()))


def test_another_payload_under_the_same_id_is_refused_and_writes_nothing(shop):
    call("send", "orders", "k", "order.placed", ORDER, "--id", "one")
    done = call("send", "orders", "k", "order.placed", '{"order_id": "o-2"}', "--id", "one")
    assert (3, True, 1) == (done.exit_code, "another payload" in done.stderr, len(events()))


@pytest.mark.parametrize("words", [('"plain"',), ("-", '"plain"')])
def test_a_plain_value_needs_no_type(shop, words):
    assert 0 == call("send", "notes", "k", *words).exit_code
    assert "" == events()[0]["fields"]["type"]


def test_the_payload_may_come_from_stdin_or_a_file(shop):
    (shop / "order.json").write_text(ORDER)
    assert 0 == call("send", "orders", "a", "order.placed", "@order.json").exit_code
    assert 0 == call("send", "orders", "b", "order.placed", "-", stdin=ORDER).exit_code
    assert 0 == call("send", "notes", "c", "-", stdin='"hello"').exit_code
    first, second, _ = events()
    assert first["fields"]["payload"] == second["fields"]["payload"]


@pytest.mark.parametrize("key", ["", " ", "a\tb", "e\u0301", "x" * 513], ids=["empty", "blank", "control", "not NFC", "too long"])
@pytest.mark.parametrize("app", [(), ("--app", "shop:app")], ids=["without the app", "with it"])
def test_a_bad_key_is_refused_with_the_same_words_everywhere(shop, key, app):
    done = call("send", "notes", key, '"x"', *app)
    assert (2, True, []) == (done.exit_code, "A key is 1 to 512 UTF-8 bytes, in Unicode form NFC, without control characters." in done.stderr, events())


@pytest.mark.parametrize(
    "words, told",
    [
        (("notes", "k", "hello"), "quotes"),
        (("orders", "k", "order.placed"), "A TYPE goes before the JSON"),
        (("orders", "k", "order.placed", "{"), "is not JSON: it ends too early: '{'"),
        (("orders", "k", "order.placed", "[" * 100_000 + "]" * 100_000), "nested too deep"),
        (("orders", "k", "order.placed", "@nowhere.json"), "No such file"),
        (("orders", "k", "order.placed", ORDER, "--id", " "), "Invalid input id"),
        (("No", "k", '"x"'), "Invalid agent name"),
        (("orders", "k", "Order Placed", "{}"), "Invalid event type name 'Order Placed': it must match"),
        (("notes", "k", '{"a": {"b": 1, "b": 2}}'), "holds the key 'b' twice in one object"),
        (("notes", "k", ""), "is not JSON: it is empty: ''"),
        (("notes", "k", '"\\ud800"'), "is not JSON: it holds a lone surrogate escape"),
    ],
)
def test_what_cannot_be_an_input_is_a_usage_error(shop, words, told):
    done = call("send", *words)
    assert (2, True, []) == (done.exit_code, told in done.stderr, events()), done.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (("nobody", "k", '"x"'), "no agent 'nobody'; it has: notes, orders"),
        (("orders", "k", "order.lost", "{}"), "no event type 'order.lost'; it has: order.placed"),
        (("orders", "k", "order.placed", '{"order": 1}'), "order_id"),
        (("orders", "k", "order.placed", '{"order_id": 7}'), "order_id"),
        (("orders", "k", '"x"'), "takes order.placed"),
        (("orders", "k", "order.placed", '{"order_id": "o", "extra": 2}'), "order.placed has no field 'extra'; it has: order_id, mood"),
    ],
)
def test_with_the_app_an_input_is_checked_at_once(shop, words, told):
    done = call("send", *words, "--app", "shop:app")
    assert (2, True, []) == (done.exit_code, told in done.stderr, events()), done.stderr


def test_bytes_that_are_not_utf8_are_refused(shop):
    done = call("send", "notes", "k", "-", stdin=b'"\xff"')
    assert (2, []) == (done.exit_code, events())


def test_a_payload_of_megabytes_goes_in_whole(shop):
    (shop / "big.json").write_text(json.dumps("é" * 3_000_000))
    assert 0 == call("send", "notes", "k", "@big.json", "--app", "shop:app").exit_code
    assert len(call("tail").stdout) < 300


@pytest.mark.parametrize(
    "spec, told",
    [
        ("shop", "module:attribute"),
        ("shop.py:app", "module:attribute"),
        ("shopp:app", "no module 'shopp'"),
        ("shop:appp", "no 'appp'. It has: app."),
        ("shop:orders", "is no App but of type Agent"),
        ("lame:app", "'nowhere_to_be_found', which is not installed"),
        ("wrong:app", "ZeroDivisionError: division by zero"),
        ("odd:app", "SyntaxError"),
    ],
)
def test_an_app_that_cannot_be_loaded_says_what_is_missing(shop, spec, told):
    (shop / "lame.py").write_text("import nowhere_to_be_found")
    (shop / "wrong.py").write_text("1 / 0")
    (shop / "odd.py").write_text("app = (")
    done = child("send", "notes", "k", '"x"', "--app", spec)
    assert (2 if "shop" in spec else 3, True) == (done.returncode, told in done.stderr), done.stderr


def test_the_app_may_be_named_by_the_environment(shop):
    done = child("send", "nobody", "k", '"x"', EVENTLOG_APP="shop:app")
    assert (2, True) == (done.returncode, "no agent 'nobody'" in done.stderr)
