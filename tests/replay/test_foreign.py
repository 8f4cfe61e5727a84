"""What another program keeps in the log: its bytes are its own affair, and no damage. In a stream of ours they are damage."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest
from click.testing import CliRunner, Result

from intentlog.agents.app import App
from intentlog.eventlog.cli import group
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.versions import ANY
from intentlog.replay.verify import FaultKind, StreamReport, verify_all
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

APP = app_of(paying)
THEIRS = "account-acct-42"


def new(number: int, kind: str, data: bytes) -> NewEvent:
    return NewEvent(bytes([number]) * 16, kind, 1, data)


@pytest.fixture
def both(shared_url: str) -> Iterator[World]:
    """A stream of an agent, and one of a program that writes JSON and, where it encrypts, anything."""
    world = World(shared_url)
    world.story(APP, RefundAsked("o-1", 4200))
    world.log.append(THEIRS, [new(1, "account.opened", b'{"owner": "Ann"}'), new(2, "account.closed", b"\xc1\xff\x00")], ANY)
    yield world
    world.log.close()


def reports(world: World, app: App | None) -> dict[str, StreamReport]:
    return {each.stream: each for each in verify_all(world.log, app)}


def call(world: World, *words: str) -> Result:
    return CliRunner().invoke(group, [*words, "--log", world.log.url], prog_name="eventlog")


@pytest.mark.parametrize("app", [None, APP])
def test_it_is_counted_and_is_no_fault(both, app):
    found = reports(both, app)[THEIRS]
    assert (True, 2, 2, 0) == (found.sound, found.events, found.foreign, found.unchecked)


def test_the_commands_say_what_was_not_looked_into(both):
    done = call(both, "verify")
    assert 0 == done.exit_code
    assert "2 events not of this app" in done.stderr
    lines = call(both, "show", THEIRS).stdout.splitlines()
    assert ['not of this app: {"owner": "Ann"}', "not of this app: 3 bytes"] == [line[line.index("not of") :] for line in lines[1:]]


@pytest.mark.parametrize("app", [None, APP])
def test_in_a_stream_of_ours_it_is_damage(both, app):
    both.log.append(STREAM, [new(3, "account.opened", b'{"owner": "Ann"}')], ANY)
    found = reports(both, app)[STREAM]
    assert ({FaultKind.UNDECODABLE}, 0) == (set(found.faults), found.foreign)
    assert "cannot be read" in call(both, "show", STREAM, "-n", "1").stdout


@pytest.mark.parametrize("app", [None, APP])
def test_behind_an_event_in_our_format_it_is_damage(both, app):
    both.log.append("plain-1", [new(4, "plain.made", b"\x81\xa1a\x01"), new(5, "plain.made", b"\x81\xa1a")], ANY)
    assert FaultKind.UNDECODABLE in reports(both, app)["plain-1"].faults


def test_a_stream_in_our_format_with_nothing_that_the_app_knows_is_another_programs(both):
    both.log.append("letter.tracking-Bank", [new(8, "tracking.recorded", b"\x81\xa1a\x01")], ANY)
    with_app, without = (reports(both, app)["letter.tracking-Bank"] for app in (APP, None))
    assert (True, 1, 0, True, 0, 1) == (with_app.sound, with_app.foreign, with_app.unchecked, without.sound, without.foreign, without.unchecked)


def test_a_type_that_the_registry_knows_is_looked_into_wherever_it_stands(both):
    event = APP.codec.stage(RefundAsked("o-2", 7), event_id=bytes([6]) * 16)
    both.log.append("plain-2", [attrs.evolve(event, data=b'{"cents": 7}')], ANY)
    assert {FaultKind.UNDECODABLE} == set(reports(both, APP)["plain-2"].faults)
    assert 1 == reports(both, None)["plain-2"].foreign


def test_in_a_stream_of_an_agent_the_first_event_is_damage_too(both):
    both.log.append(f"{STREAM.partition('-')[0]}-other", [new(7, "gone.for_good", b"\xc1")], ANY)
    assert {FaultKind.UNDECODABLE} == set(reports(both, APP)[f"{STREAM.partition('-')[0]}-other"].faults)
