"""Versions, times and edits as arguments: every command reads them alike, and refuses the same slips with the same exit code."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from intentlog.eventlog.cli import group
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from tests.replay.world import START, STREAM, RefundAsked, World, app_of, paying

app = app_of(paying)
"""What the commands load by name."""
STEP = 250
"""µs between the events: several of them in each millisecond that is printed."""
LAST = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recorded")
    world = World()
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    now = START + 801_100
    log = open_log(f"sqlite:///{made}/eventlog.db", clock=lambda: now)
    for each in world.log.read(STREAM):
        log.append(STREAM, [NewEvent(each.event_id, each.type, each.schema, each.data, each.correlation, each.causation)], ANY)
        now += STEP
    log.close()
    world.log.close()
    return made


def eventlog(folder: Path, *arguments: str) -> tuple[int, str, str]:
    with chdir(folder):
        done = CliRunner().invoke(group, arguments, env={"EVENTLOG_APP": f"{__name__}:app"}, prog_name="eventlog")
    return done.exit_code, done.stdout, done.stderr


def told(folder: Path, *arguments: str) -> dict[str, object]:
    _, out, err = eventlog(folder, *arguments, "--json")
    assert err == ""
    found: dict[str, object] = json.loads(out)
    return found


def shown(folder: Path) -> list[str]:
    found = [json.loads(line)["time"] for line in eventlog(folder, "show", STREAM, "--json")[1].splitlines()]
    return [time[: len("2025-11-29T09:14:00.801")] for time in found]


@pytest.mark.parametrize("version", range(LAST + 1))
def test_a_time_as_it_is_printed_names_a_place_that_holds_the_event(folder, version):
    time = shown(folder)[version]
    same = [place for place, each in enumerate(shown(folder)) if each == time]
    assert time[11:] in eventlog(folder, "show", STREAM)[1]
    assert max(same) == told(folder, "state", STREAM, "--at", time)["version"]
    assert max(same) == told(folder, "why", STREAM, "run.inputs", "--at", time)["at"]
    found = told(folder, "diff", STREAM, time, "now")
    assert (max(same), LAST) == (found["a"], found["b"])


def test_a_fork_at_a_time_as_it_is_printed_holds_the_event(folder):
    time = shown(folder)[LAST]
    assert LAST == told(folder, "fork", STREAM, "--at", time, "--dry-run")["forked_at"]


@pytest.mark.parametrize("version", range(LAST + 1))
def test_since_begins_and_until_ends_with_all_of_the_time_that_is_given(folder, version):
    times = shown(folder)
    for option, expected in (("--since", times[version:]), ("--until", times[: version + 1])):
        out = eventlog(folder, "search", option, times[version], "--json")[1].splitlines()
        found = [json.loads(line)["version"] for line in out]
        whole = [place for place, each in enumerate(times) if (each >= times[version] if option == "--since" else each <= times[version])]
        assert whole == found
        assert len(expected) <= len(found)
        assert f"{len(whole)} events {option[2:]} {times[version]}" in eventlog(folder, "stats", option, times[version])[1]


COMMANDS = (
    ("state", STREAM, "--at"),
    ("why", STREAM, "run.inputs", "--at"),
    ("fork", STREAM, "--dry-run", "--at"),
    ("bisect", STREAM, "run.inputs > 0", "--at"),
    ("diff", STREAM, "0"),
    ("diff", STREAM),
)


@pytest.mark.parametrize("now", ["now", "NOW", "head", "end"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_takes_now(folder, command, now):
    more = ("0",) if command == ("diff", STREAM) else ()
    code, out, err = eventlog(folder, *command, now, *more)
    assert (True, "") == (code in (0, 1), err)
    last = eventlog(folder, *command, str(LAST), *more)
    assert (code, out) == last[:2]


@pytest.mark.parametrize("slip", ["rubbish", "@", "2025-13-01", "09:14", "1.5"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_no_place_is_the_same_usage_error_everywhere(folder, command, slip):
    more = ("0",) if command == ("diff", STREAM) else ()
    code, out, err = eventlog(folder, *command, slip, *more)
    assert (2, "", True) == (code, out, f"{slip!r} is no place in a stream" in err)
    assert "or now" in err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_place_that_is_not_there_is_the_same_error_everywhere(folder, command):
    more = ("0",) if command == ("diff", STREAM) else ()
    code, out, err = eventlog(folder, *command, "99", *more)
    assert (3, "", True) == (code, out, "has no version 99: its versions are 0 to 10" in err)


@pytest.mark.parametrize(("slip", "said"), [("value", "is no edit: write FIELD=VALUE"), ("=3", "is no edit"), ("a..b=3", "is no edit")])
def test_an_edit_that_is_none_is_a_usage_error(folder, slip, said):
    code, out, err = eventlog(folder, "fork", STREAM, "--edit", "8", slip, "--dry-run")
    assert (2, "", True) == (code, out, said in err)


@pytest.mark.parametrize("text", ["{", "3", '[{"type": 3}]', '{"type": "x", "before": "soon"}'])
def test_a_file_of_events_that_is_none_is_a_usage_error(folder, tmp_path, text):
    (tmp_path / "more.json").write_text(text)
    code, out, err = eventlog(folder, "fork", STREAM, "--insert", str(tmp_path / "more.json"), "--dry-run")
    assert (2, "", False) == (code, out, "Traceback" in err)
