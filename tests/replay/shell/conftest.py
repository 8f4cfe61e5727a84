"""A session over a recorded history, and what it says as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from intentlog.agents import App
from intentlog.eventlog.events import NewEvent, StoredEvent
from intentlog.eventlog.log import EventLog
from intentlog.eventlog.versions import ANY
from intentlog.replay.shell import COMMANDS, Session
from intentlog.replay.shell.printing import Screen
from tests.replay.world import STREAM, RefundAsked, World, app_of, paying

Telling = Callable[[str], str]


@pytest.fixture(scope="session")
def app() -> App:
    return app_of(paying)


@pytest.fixture(scope="session")
def events() -> list[StoredEvent]:
    """Two refunds of one account in 22 events, and one of another."""
    world, app = World("memory://"), app_of(paying)
    world.story(app, RefundAsked("o-1", 4200), RefundAsked("o-2", 7))
    world.story(app, RefundAsked("o-3", 1), key="acct-43")
    recorded = list(world.log.read_all())
    world.log.close()
    return recorded


@pytest.fixture(scope="session")
def recorded(events: list[StoredEvent]) -> Iterator[EventLog]:
    """A log of them, in memory, to which nobody adds."""
    world = World("memory://")
    for each in events:
        world.clock.now = each.recorded_at
        event = NewEvent(each.event_id, each.type, each.schema, each.data, each.correlation, each.causation)
        world.log.append(each.stream, [event], ANY)
    yield world.log
    world.log.close()


@pytest.fixture
def session(recorded: EventLog, app: App) -> Session:
    made = session_over(recorded, app)
    made.open(STREAM)
    return made


def session_over(log: EventLog, app: App | None, **options: Any) -> Session:
    return Session(log, options.pop("url", "sqlite:///eventlog.db"), app, options.pop("spec", ""), COMMANDS, debug=True, **options)


@pytest.fixture
def tell(session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Telling:
    """What the session answers to a line, as it is printed at 80 columns."""
    return teller(session, capsys, monkeypatch)


def teller(session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Telling:
    monkeypatch.setenv("COLUMNS", "80")

    def told(line: str) -> str:
        Screen().show(session.do(line))
        return "".join(f"{each.rstrip()}\n" for each in capsys.readouterr().out.splitlines())

    return told


@pytest.fixture
def told_by(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[Session], Telling]:
    """The same for a session of one's own."""
    return lambda session: teller(session, capsys, monkeypatch)
