"""The shell over each store and over bundles: the same, read-only, with nothing left open while a person thinks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from intentlog.eventlog.events import NewEvent, StoredEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY
from intentlog.replay.bundles import write_bundle
from intentlog.replay.bundles.layout import FORMAT, VERSION, Manifest
from intentlog.replay.bundles.log import BundleLog
from intentlog.replay.shell import Session
from intentlog.replay.sources import open_source
from tests.replay.shell.conftest import session_over
from tests.replay.world import STREAM, World, app_of, paying, unanswered

LINES = (
    "st", "ev", "prev", "log", "back 3", "until st.refunded_cents > 4200", "goto 2", "next RefundPaid", "diff", "watch orders", "break st.refunded_cents",
    "goto 0", "until", "run", "step", "len(log)", "log[3]", "st.orders", "open accounts-acct-43", "next", "refresh",
)  # fmt: skip


@pytest.fixture
def kept(shared_url: str, events) -> str:
    """The URL of a log of the events, on each store that outlives a process."""
    write(shared_url, events)
    return shared_url


def write(url: str, events: list[StoredEvent]) -> None:
    """The events in the log at ``url``, recorded at their own moments."""
    world = World(url)
    for each in events:
        world.clock.now = each.recorded_at
        world.log.append(each.stream, [NewEvent(each.event_id, each.type, each.schema, each.data, each.correlation, each.causation)], ANY)
    world.log.close()


@pytest.fixture
def reader(kept: str, app) -> Iterator[Session]:
    with closing(open_source(kept)) as log:
        made = session_over(log, app, url=kept)
        made.open(STREAM)
        yield made


def test_every_store_gives_the_same_answers(reader, session, told_by):
    here, there = told_by(reader), told_by(session)
    assert {line: _placeless(there(line)) for line in LINES} == {line: _placeless(here(line)) for line in LINES}


def _placeless(said: str) -> str:
    """Positions are each store's own."""
    return re.sub(r"position  +\d+\n", "", said)


def test_the_log_is_open_for_reading_only(reader):
    with pytest.raises(Exception, match="read"):
        reader.log.append("accounts-acct-42", [], ANY)


def test_nothing_is_left_open_between_two_lines(postgres_url, app, events):
    import psycopg

    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}application_name=a_shell"
    write(postgres_url, events)
    with closing(open_source(url)) as log, psycopg.connect(urlsplit(postgres_url).geturl(), autocommit=True) as watching:
        session = session_over(log, app, url=url)
        session.open(STREAM)
        states = {}
        for line in LINES:
            session.do(line)
            rows = watching.execute("SELECT state, backend_xmin IS NULL FROM pg_stat_activity WHERE application_name = 'a_shell'").fetchall()
            states[line] = sorted(set(rows))
    assert {line: [("idle", True)] for line in LINES} == states


def test_a_bundle_is_walked_without_its_log(recorded: EventLog, tmp_path: Path, told_by):
    app = app_of(paying, unanswered())
    path = tmp_path / "case.bundle"
    write_bundle(recorded, [STREAM], path, app)
    with closing(open_source(str(path))) as bundle:
        session = session_over(bundle, app, url=str(path))
        session.open(STREAM)
        tell = told_by(session)
        assert "~ refunded_cents  4207 → 4200" in tell("back 3")
        assert "same as recorded" in tell("run")
        assert f"{STREAM} version 18" in tell("raw")
        assert "tail reads logs only, and" in tell("tail")


def test_without_the_code_the_runtimes_part_is_there(recorded: EventLog, told_by):
    session = session_over(recorded, None)
    session.open(STREAM)
    tell = told_by(session)
    assert "without --app nobody knows how to fold users' events" in " ".join(tell("st").split())
    assert ("2\n", "4200\n") == (tell("st run.inputs"), tell("log[9]['cents']"))
    assert "refund.paid" in tell("goto 9")
    tell("back until not run.intents")
    assert 4 == session.at


def test_an_event_that_cannot_be_read_is_walked_up_to(events, world, app, told_by):
    for each in events:
        if each.stream == STREAM:
            schema = 9 if each.version == 14 else each.schema
            world.log.append(each.stream, [NewEvent(each.event_id, each.type, schema, each.data, each.correlation, each.causation)], ANY)
    session = session_over(world.log, app)
    session.open(STREAM)
    tell = told_by(session)
    assert 13 == session.at
    said = " ".join(tell("goto end").split())
    assert ("It cannot be folded beyond this" in said, "schema version 9" in said, "raw 14" in said) == (True, True, True)
    assert "cannot be read: " in tell("log")
    assert "schema version 9" in " ".join(tell("next").split())
    assert "Account(refunded_cents=4200, orders={'o-1'})\n" == tell("st")


def test_a_history_that_cannot_be_folded_at_all_is_still_looked_at(events, world, told_by, app):
    first = events[0]
    world.log.append(STREAM, [NewEvent(first.event_id, first.type, 9, first.data)], ANY)
    session = session_over(world.log, app)
    session.open(STREAM)
    tell = told_by(session)
    assert (f"at -1  {STREAM} › ", True) == (session.prompt, "Account(refunded_cents=0" in tell("st"))
    for line in ("log", "ev", "next", "back", "goto 0", "prev", "diff", "until st.refunded_cents", "run", "step", "ev.x", "watch orders", "goto end", "reload"):
        assert "Traceback" not in tell(line)


@pytest.mark.parametrize("with_app", [True, False])
def test_a_stream_of_another_program_is_walked_too(world, app, told_by, with_app):
    theirs = [
        NewEvent(bytes([number]) * 16, kind, 1, data) for number, kind, data in ((1, "account.opened", b'{"owner": "Ann"}'), (2, "account.closed", b"\xc1\xff"))
    ]
    world.log.append("account-acct-42", theirs, ANY)
    session = session_over(world.log, app if with_app else None)
    session.open("account-acct-42")
    tell = told_by(session)
    assert ("not of this app: 2 bytes" in tell("log"), session.at) == (True, 1)
    assert 'not of this app: {"owner": "Ann"}' in tell("back")
    assert 'b\'{"owner": "Ann"}\'\n' == tell("ev").splitlines()[-1] + "\n"
    for line in ("st", "st run", "diff", "run", "until st.x", "next account.closed"):
        assert "unexpected" not in tell(line)


def test_what_an_event_is_called_reaches_the_terminal_escaped(recorded, told_by):
    first, *rest = recorded.read(STREAM)
    odd = [first._replace(type="odd\x1b[31m\u202e"), *rest]
    log = BundleLog("odd", Manifest(FORMAT, VERSION, "", "", "memory", (), {}), {STREAM: odd}, {})
    session = session_over(log, None)
    session.open(STREAM)
    tell = told_by(session)
    for line in ("ev 0", "log all", "goto start", "next", "prev", "ev", "next odd"):
        assert not set("\x1b\u202e") & set(tell(line)), line
