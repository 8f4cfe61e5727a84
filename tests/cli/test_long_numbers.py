"""Whole numbers of any size are values like others: no command dies of one, a person is told its length, and JSON has every digit."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intentlog.eventlog.printing import as_text, from_json, one_line, plain, to_json
from tests.cli.conftest import call

APP = """
from datetime import timedelta
from intentlog.agents import Aggregate, App, agent, applies, tool
from intentlog.eventlog.registry import event

@event("counted", version=1)
class Counted:
    number: int

class Counter(Aggregate):
    total: int = 0

    @applies(Counted)
    def counted(self, event: Counted):
        return self.evolve(total=self.total + event.number)

@tool(side_effect=True)
def great(number: int):
    return {"v": 10**5000, "k": [10**5000 - 1, -(10**6000)], 10**4500: "as a key"}

@agent("sums", state=Counter)
async def sums(ctx, text: str):
    ctx.emit(Counted(10**4400 + 7))
    told = await ctx.outcome_of(ctx.act(great, number=10**4400, ttl=timedelta(hours=1)))
    return told.value

app = App(agents=[sums])
"""
STREAM = "sums-ann"


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stream with such numbers in arguments, state, outcome and result; the intent's id."""
    (tmp_path / "sums.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sums", raising=False)
    assert 0 == call("init").exit_code
    assert 0 == call("send", "sums", "ann", '"go"', "--id", "go", "--app", "sums:app").exit_code
    assert 0 == call("run", "sums:app", "--until-idle").exit_code
    return str(json.loads(call("tail", "--type", "intent.attempted", "--json").stdout)["fields"]["intent_id"])


@pytest.fixture(params=[4300, 640])
def limit(request: pytest.FixtureRequest) -> Iterator[int]:
    """The least that Python may be told, and what it is told unasked."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(request.param)
    yield request.param
    sys.set_int_max_str_digits(before)


COMMANDS = [
    *(f"show {STREAM}", "trace go", "tail -n 20", "intents list --all", "intents show INTENT", "search as", "search --type intent.settled", "stats --events"),
    *(f"state {STREAM} --app sums:app", f"diff {STREAM} 0 now --app sums:app", f"why {STREAM} total --app sums:app", f"raw {STREAM} 1 --app sums:app"),
    *(f"replay {STREAM} --app sums:app", "verify --app sums:app", f"bisect {STREAM} 'st.total > 0' --app sums:app", "dead-letters list", "streams"),
]


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_dies_of_a_long_number(sums, limit, command, form):
    words = [sums if word == "INTENT" else word for word in shlex.split(command)]
    done = call(*words, *form)
    assert done.exit_code in (0, 1), done.stderr
    assert limit == sys.get_int_max_str_digits()
    if not form:
        assert max(map(len, done.stdout.splitlines() or [""])) < 4000


def test_a_person_is_told_its_length_and_json_has_it_whole(sums):
    assert "<a number of 5,001 digits>" in call("intents", "show", sums).stdout
    for words in (("intents", "show", sums), ("search", "--type", "intent.settled"), ("tail", "--type", "intent.settled")):
        assert "1" + 5000 * "0" in call(*words, "--json").stdout
    assert "1" + 4500 * "0" + '": "as a key"' in call("intents", "show", sums, "--json").stdout
    assert "total" in (told := call("state", STREAM, "--app", "sums:app").stdout)
    assert "<a number of 4,401 digits>" in told
    assert "1" + 4399 * "0" + "7" in call("state", STREAM, "--app", "sums:app", "--json").stdout


def test_a_long_number_may_be_what_an_intent_ended_with(sums):
    assert 0 == call("send", "sums", "bob", '"go"', "--id", "b", "--app", "sums:app").exit_code
    assert 0 == call("worker", "sums:app", "--until-idle").exit_code
    (found,) = [from_json(line) for line in call("intents", "list", "--json").stdout.splitlines()]
    done = call("intents", "settle", found["id"], "OK", "9" * 5000, "--json")
    assert (0, True) == (done.exit_code, '"value": ' + "9" * 5000 in done.stdout), done.stderr
    assert (2, True) == ((wrong := call("intents", "settle", found["id"], "OK", "9" * 5000 + "x")).exit_code, "is no JSON" in wrong.stderr)


@pytest.mark.parametrize(
    ("number", "digits"), [(10**5000, "5,001"), (10**5000 - 1, "5,000"), (10**700, "701"), (10**700 - 1, "700"), (2**2101, "633")], ids=list("abcde")
)
def test_digits_are_counted_exactly(limit, number, digits):
    assert (f"<a number of {digits} digits>", f"<a negative number of {digits} digits>") == (plain(number, short=True), plain(-number, short=True))


def test_numbers_that_can_be_read_are_shown_as_they_are(limit):
    assert (str(10**600), {"a": [True, 7]}) == (one_line(10**600), plain({"a": [True, 7]}, short=True))


def test_long_numbers_come_back_from_json_as_they_were(limit):
    told: dict[str, Any] = {"a": 10**9000, "b": [-(10**9000)]}
    assert told == from_json(to_json(told))
    assert {"a": 9001} == {name: len(text) for name, text in [("a", as_text(10**9000))]}
    with pytest.raises(ValueError, match="Expecting"):
        from_json("")
    assert limit == sys.get_int_max_str_digits()
