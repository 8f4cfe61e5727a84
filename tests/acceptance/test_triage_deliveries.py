"""Every recorded delivery becomes an input; what is no delivery is refused with its text."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from examples.triage import app
from examples.triage.deliveries import Delivery, intake
from examples.triage.servers import LABELS, propose
from intentlog.agents.errors import InputRefused
from intentlog.agents.sending import typed_input


def line(**changes):
    return {"source": "x", "event": "issues", "index": 3, "repository": "o/r", "number": 7, "payload": {"action": "opened"}, **changes}


def test_every_recorded_delivery_is_an_input_with_an_id_of_its_own(shared_data):
    with gzip.open(shared_data, "rt", encoding="utf-8") as recorded:
        inputs = [intake(json.loads(text)) for text in recorded]
    assert 329 == len(inputs) == len({given.id for given in inputs})
    streams = Counter(typed_input(app, given)[0] for given in inputs)
    assert (29, 153) == (len(streams), streams["triage-Codertocat/Hello-World"])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "o/r#7"),
        ({"number": None}, "o/r"),
        ({"repository": None, "number": None}, "issues"),
        ({"repository": "cafe\u0301/r", "number": None}, "caf\u00e9/r"),
    ],
)
def test_the_key_is_the_issue_else_the_repository_else_the_event(changes, key):
    assert key == intake(line(**changes)).key


@pytest.mark.parametrize("payload", [{}, {"issue": None, "sender": None}, {"issue": {"title": None, "body": None, "user": None, "labels": None}}])
def test_missing_and_null_read_as_empty(payload):
    expected = Delivery("issues", "", "o/r", 7, "", "", "", "", "", "", False, ())
    assert expected == intake(line(payload=payload)).payload


def test_a_bot_is_not_answered():
    person, bot = ({"action": "opened", "sender": {"type": kind}} for kind in ("User", "Bot"))
    assert (True, False) == (intake(line(payload=person)).payload.asks_for_triage, intake(line(payload=bot)).payload.asks_for_triage)


@pytest.mark.parametrize("changes", [{"event": None}, {"index": "3"}, {"payload": []}])
def test_a_line_that_is_no_delivery_is_refused(changes):
    with pytest.raises(InputRefused, match="no webhook delivery"):
        intake(line(**changes))


def test_the_model_of_the_example_offers_only_what_it_was_offered():
    prompt = f"Labels offered: {', '.join(LABELS)}\nTitle: Spelling error in the README"
    assert ["bug", "documentation"] == propose(prompt)["labels"]
    assert ["needs-triage"] == propose("Labels offered: \nTitle: Spelling error")["labels"]
