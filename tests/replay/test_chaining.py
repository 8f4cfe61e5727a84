"""A chain finds whatever was changed since it was made, and names the first event; what was appended since is no change."""

from __future__ import annotations

import subprocess

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay.chaining import chain_of, differs_at, read_lines, total_of, written_lines
from intentlog.replay.errors import BrokenChain
from tests.replay.world import STREAM, RefundAsked, World, app_of, copy_of, paying
from tests.stores import Store


def new(number: int, **changes) -> NewEvent:
    return attrs.evolve(NewEvent(number.to_bytes(16, "big"), "x.y", 1, b"\xa1a", b"c" * 16, None), **changes)


def chain(events: list[NewEvent], times: list[int] | None = None):
    moments = iter(times or [])
    log = open_log("memory://", clock=lambda: next(moments, 7))
    for event in events:
        log.append("x-1", [event], ANY)
    found = chain_of(log, "x-1")
    log.close()
    return found


CHANGES = st.sampled_from([{"type": "x.z"}, {"schema": 2}, {"data": b"\xa1b"}, {"correlation": None}, {"causation": b"d" * 16}, {"event_id": b"e" * 16}])


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 12), at=st.integers(0, 11), change=CHANGES, more=st.integers(0, 3))
def test_a_changed_column_of_any_event_is_found_at_its_version(length, at, change, more):
    at %= length
    events = [new(n) for n in range(length)]
    sealed = chain(events)
    changed = [attrs.evolve(event, **change) if n == at else event for n, event in enumerate(events)] + [new(100 + n) for n in range(more)]
    assert at == differs_at(sealed, chain(changed))
    assert at == differs_at(sealed, chain([event for n, event in enumerate(events) if n != at] + [new(200)]))


def test_a_changed_moment_is_found():
    events = [new(n) for n in range(3)]
    assert 1 == differs_at(chain(events, [1, 2, 3]), chain(events, [1, 9, 3]))


def test_what_was_appended_since_is_no_change_and_what_is_gone_is():
    events = [new(n) for n in range(5)]
    log = open_log("memory://", clock=lambda: 7)
    log.append("x-1", events, ANY)
    assert differs_at(chain(events[:3]), chain_of(log, "x-1", upto=2)) is None
    assert 3 == differs_at(chain(events), chain(events[:3]))
    log.close()


def test_a_copy_in_another_log_has_the_same_chain(world):
    world.story(app_of(paying), RefundAsked("o-1", 1))
    with copy_of(world.log.read(STREAM)) as copy:
        copy.log.append("before-1", [new(1)], ANY)
        assert chain_of(world.log, STREAM) == chain_of(copy.log, STREAM)


@pytest.fixture
def lines() -> list[str]:
    return list(written_lines([chain([new(1), new(2)]), attrs.evolve(chain([new(3)]), stream="x-2")]))


def test_a_file_comes_back_as_it_was_written(lines):
    found = list(read_lines(lines))
    assert (["x-1", "x-2"], [1, 0]) == ([each.stream for each in found], [each.version for each in found])
    assert lines == list(written_lines(found))
    assert total_of(found) == total_of(reversed(found))


@pytest.mark.parametrize("damage", [lambda f: f[:-1], lambda f: f[:1] + f[2:], lambda f: ["{}", *f[1:]], lambda f: [*f[:1], "no json", *f[1:]], lambda f: []])
def test_a_file_that_is_not_whole_is_refused(lines, damage):
    with pytest.raises(BrokenChain):
        list(read_lines(damage(lines), "a.chain"))


def test_a_digest_in_the_file_cannot_be_exchanged(lines):
    before, found = lines[1].split('"digest": "')
    lines[1] = f'{before}"digest": "{"1" if found[0] == "0" else "0"}{found[1:]}'
    with pytest.raises(BrokenChain, match="not whole"):
        list(read_lines(lines))


def test_verify_compares_and_names_the_first_event(shared_store: Store, shared_url: str, tmp_path):
    from tests.cli.conftest import call

    world = World(shared_url)
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    file = tmp_path / "monday.chain"
    made = call("verify", "--log", shared_url, "--chain-out", str(file))
    assert (0, True) == (made.exit_code, made.stdout.splitlines()[-1].startswith("chain "))
    world.story(app_of(paying), RefundAsked("o-2", 7))
    assert 0 == call("verify", "--log", shared_url, "--chain-from", str(file)).exit_code
    assert 1 == shared_store.edit(shared_url, "UPDATE events SET recorded_at = recorded_at + 1 WHERE version = 3")
    found = call("verify", "--log", shared_url, "--chain-from", str(file))
    assert (1, True) == (found.exit_code, f"{STREAM} version 3: not what it was when the chain was made" in found.stdout), found.output
    file.write_text("no chain")
    assert 2 == call("verify", "--log", shared_url, "--chain-from", str(file)).exit_code
    world.log.close()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_chain_that_is_not_written_to_its_end_leaves_the_one_before_as_it_was(tmp_path, stop):
    from intentlog.eventlog.console import CouldNot
    from intentlog.replay import cli_verify

    file = tmp_path / "monday.chain"
    file.write_text("monday\n")

    def lines():
        yield "tuesday"
        raise stop

    with pytest.raises((KeyboardInterrupt, CouldNot)) as ended:
        cli_verify._write_whole(str(file), lines())
    assert ("monday\n", [file]) == (file.read_text(), list(tmp_path.iterdir()))
    assert ended.type is KeyboardInterrupt or f"{file} cannot be written: No space left on device." == str(ended.value)
    cli_verify._write_whole(str(file), iter(["tuesday"]))
    assert ("tuesday\n", [file]) == (file.read_text(), list(tmp_path.iterdir()))


def test_a_chain_may_be_written_to_what_is_no_file_and_one_that_cannot_be_is_named(shared_url):
    from tests.acceptance.forking import PROGRAM

    world = World(shared_url)
    world.story(app_of(paying), RefundAsked("o-1", 4200))
    world.log.close()
    done = [subprocess.run([*PROGRAM, "verify", "--log", shared_url, "--chain-out", to], capture_output=True, text=True) for to in ("/dev/stdout", "/dev/full")]
    assert (0, 3) == (done[0].returncode, done[1].returncode)
    assert (True, "eventlog: /dev/full cannot be written: No space left on device.\n") == (STREAM in done[0].stdout, done[1].stderr)
