"""The commands of ``eventlog`` within the shell: the same answers, about what stands at the cursor; and none that writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from intentlog.eventlog.cli import found
from intentlog.eventlog.console import FOUND, OK
from intentlog.eventlog.events import NewEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.versions import ANY
from intentlog.replay.shell import Session
from intentlog.replay.shell.table import ENTRIES
from intentlog.replay.shell.through import READING
from tests.replay.shell.conftest import session_over, teller
from tests.replay.shell.test_loading import AGGREGATE
from tests.replay.world import STREAM, World

APP = """
from tests.replay.world import app_of, paying, unanswered
app = app_of(paying, unanswered())
"""


@pytest.fixture(scope="module")
def written(events, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    world = World(f"sqlite:///{folder}/eventlog.db")
    for each in events:
        world.clock.now = each.recorded_at
        world.log.append(each.stream, [NewEvent(each.event_id, each.type, each.schema, each.data, each.correlation, each.causation)], ANY)
    world.log.close()
    (folder / "refunds_through.py").write_text(APP)
    return folder


@pytest.fixture
def session(written: Path, app, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.chdir(written)
    with closing(open_log("sqlite:///eventlog.db", create=False, read_only=True)) as log:
        made = session_over(log, app, spec="refunds_through:app")
        made.open(STREAM)
        yield made


@pytest.fixture
def tell(session, capsys, monkeypatch):
    return teller(session, capsys, monkeypatch)


def test_they_are_about_the_open_stream_at_the_cursor(session, tell):
    session.open(STREAM, 9)
    assert tell("state").startswith(f"{STREAM} at version 9\n")
    assert tell("show").startswith(f"{STREAM}  2025-11-29\n")
    assert tell("raw").startswith(f"{STREAM} version 9\n")
    assert "1 stream: 1 same  (22 events, 4 turns, 4 hits, no call)" in tell("replay")
    assert "1 stream, 22 events: sound\n" == tell("verify")


def test_what_is_given_comes_before_what_is_filled_in(session, tell):
    session.open(STREAM, 9)
    assert tell("state --at 3").startswith(f"{STREAM} at version 3\n")
    assert tell("state accounts-acct-43 --at 3").startswith("accounts-acct-43 at version 3\n")
    assert tell("raw 2").startswith(f"{STREAM} version 2\n")
    assert 4 == len(tell("show --from 2 --to 4").splitlines())
    assert "2 streams" in tell("replay --all")
    assert "2 streams, 33 events: sound\n" == tell("verify all")
    assert "1 stream: 1 same" in tell("replay accounts-acct-43")


@pytest.mark.parametrize("name", [each for each in ("why", "bisect", "trace", "search") if each in READING])
def test_what_looks_for_something_finds_it(session, tell, name):
    line = {"why": "why refunded_cents", "bisect": "bisect st.refunded_cents > 4000", "trace": "trace in-1", "search": "search o-2"}[name]
    said = tell(line)
    assert (True, True) == (session.do(line).code in (OK, FOUND), len(said.splitlines()) > 1), said


def test_why_is_asked_as_of_the_cursor(session, tell):
    session.open(STREAM, 12)
    assert f"refunded_cents is 4200  ({STREAM} at version 12)" == tell("why refunded_cents").splitlines()[0]


def test_an_expression_needs_no_quotes_and_may_have_them(session, tell):
    assert tell("bisect st.refunded_cents > 4000") == tell('bisect "st.refunded_cents > 4000"')


def test_a_bundle_of_the_stream_is_written_beside(session, tell, written):
    tell("bundle -o case.bundle")
    assert (written / "case.bundle").is_file()


@pytest.mark.parametrize("name", sorted(set(found()) - set(ENTRIES)))
def test_no_other_command_is_there(session, tell, name):
    assert f"The shell only reads. Outside of it: eventlog {name} accounts acct-42\n" == tell(f"{name} accounts acct-42")


@pytest.mark.parametrize(
    "line", ["intents settle x --as OK", "dead-letters redrive", "approvals approve x", "projections run", "projections rebuild sums", "intents retry x"]
)
def test_of_groups_only_what_reads_is_there(session, tell, line):
    assert "The shell only reads" in tell(line)


@pytest.mark.parametrize("line", ["fork --live", "fork --live --yes", "fork --to sqlite:///eventlog.db", "fork --to=sqlite:///eventlog.db"])
def test_a_fork_is_neither_live_nor_in_this_log(session, tell, line):
    assert "writes neither to the log it reads" in " ".join(tell(line).split())


def test_nothing_that_reads_changes_the_log(session, written):
    before = {path.name: path.read_bytes() for path in written.glob("eventlog.db*") if not path.name.endswith("-shm")}
    for word in sorted(READING):
        if word not in ("tail", "bundle", "fork"):
            session.do(word)
    assert before == {path.name: path.read_bytes() for path in written.glob("eventlog.db*") if not path.name.endswith("-shm")}


def test_options_are_told(session, tell):
    assert "Usage: eventlog show" in tell("show --help")
    assert "No such option" in tell("show --nonsense")


def test_a_loaded_app_is_the_one_that_replays(session, tell, written):
    path = written / "otherwise.py"
    path.write_text(APP)
    tell(f"load {path.name}")
    assert "1 stream: 1 same" in tell("replay")


def test_the_environment_is_left_as_it_is(session):
    before = dict(os.environ)
    session.do("replay")
    session.do("load refunds_through.py")
    assert before == dict(os.environ)


def test_commands_that_fold_answer_with_what_folds_here(session, tell, written):
    (written / "account.py").write_text(AGGREGATE.format(cents="10 * e.cents"))
    tell("load account.py")
    here = session.walk.state.state.refunded_cents
    assert 42070 == here
    assert tell("why refunded_cents").startswith(f"refunded_cents is {here}  ({STREAM} at version 21)")
    assert f"refunded_cents  {here}" in tell("state")
    assert "st.refunded_cents > 42000 holds after version" in tell("bisect st.refunded_cents > 42000")
    refused = " ".join(tell("bisect st.refunded_cents > 42000 --minimize").split())
    assert "runs the agent's code, and account.py:Account, which folds here, has none" in refused
    assert "1 stream: 1 same" in tell("replay")
    tell("unload")
    assert tell("why refunded_cents").startswith("refunded_cents is 4207 ")


def test_a_stream_may_be_named_in_quotes_as_on_a_command_line(session, tell):
    assert tell("open 'accounts-acct-43'") == tell('open "accounts-acct-43"') == tell("open accounts-acct-43")
