"""The library's own suites, over each store, with UUIDs and with text for ids. Importing them needs pycryptodome."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Sequence
from typing import Any, Literal, cast
from unittest import TestCase

import pytest
from eventsourcing.persistence import Notification, StoredEvent, TrackingRecorder
from eventsourcing.tests import persistence as suites
from eventsourcing.utils import Environment, get_topic

from intentlog.eventlog.opening import open_log
from intentlog.eventlog.recorders import (
    Layout,
    LogAggregateRecorder,
    LogApplicationRecorder,
    LogProcessRecorder,
    LogTrackingRecorder,
)
from intentlog.eventlog.recorders.memory import MemoryFactory
from intentlog.eventlog.recorders.postgres import PostgresFactory
from intentlog.eventlog.recorders.sqlite import SqliteFactory
from intentlog.eventlog.testing.maker import StoreMaker, fresh


class Memory(TestCase):
    """A memory log for each recorder."""

    id_type: Literal["uuid", "text"] = "uuid"
    recorder_class: type[Any]

    def url(self) -> str:
        return "memory://"

    def create_recorder(self) -> Any:
        log = open_log(self.url())
        self.addCleanup(log.close)
        return self.recorder_class(log, Layout(id_type=self.id_type))


class Sqlite(Memory):
    """A file for each recorder."""

    def url(self) -> str:
        return f"sqlite:///{self.enterContext(tempfile.TemporaryDirectory())}/log.db"


class Postgres(TestCase):
    """A schema for each recorder."""

    id_type: Literal["uuid", "text"] = "uuid"
    recorder_class: type[Any]

    @pytest.fixture(autouse=True)
    def server(self, postgres_maker: StoreMaker) -> None:
        self.maker = postgres_maker

    def create_recorder(self) -> Any:
        return self.recorder_class(self.enterContext(fresh(self.maker)), Layout(id_type=self.id_type))


class Text(TestCase):
    """Ids that are no UUIDs, and no streams either."""

    id_type: Literal["uuid", "text"] = "text"

    def new_originator_id(self) -> str:
        return f"Ärger/{uuid.uuid4()}"


class AggregateSuite(suites.AggregateRecorderTestCase):
    recorder_class = LogAggregateRecorder


class ApplicationSuite(suites.ApplicationRecorderTestCase[LogApplicationRecorder]):
    recorder_class = LogApplicationRecorder

    def test_insert_subscribe(self):
        self.optional_test_insert_subscribe()


class TrackingSuite(suites.TrackingRecorderTestCase):
    recorder_class = LogTrackingRecorder


class ProcessSuite(suites.ProcessRecorderTestCase):
    recorder_class = LogProcessRecorder


class NonInterleavingSuite(suites.NonInterleavingNotificationIDsBaseCase):
    recorder_class = LogApplicationRecorder


class ProcessAsApplicationSuite(ApplicationSuite):
    recorder_class = LogProcessRecorder


class Counting(LogApplicationRecorder):
    """Notification ids as 1, 2, 3 …: how many notifications there are up to that one, in the order of the log."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._counted: list[int] = []

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int] | None:
        return [self._number(position) for position in super().insert_events(stored_events, **kwargs) or ()]

    def select_notifications(
        self, start: int | None, limit: int, stop: int | None = None, topics: Sequence[str] = (), *, inclusive_of_start: bool = True
    ) -> Sequence[Notification]:
        first, last = (None if number is None else self._position(number) for number in (start, stop))
        found = super().select_notifications(first, limit, last, topics, inclusive_of_start=inclusive_of_start)
        return [Notification(n.originator_id, n.originator_version, n.topic, n.state, self._number(n.id)) for n in found]

    def max_notification_id(self) -> int | None:
        found = super().max_notification_id()
        return None if found is None else self._number(found)

    def _number(self, position: int) -> int:
        last = self._counted[-1] if self._counted else 0
        self._counted += [each.position for each in self.log.read_all(after=last, categories=(self.layout.category,))]
        return self._counted.index(position) + 1

    def _position(self, number: int) -> int:
        return self._counted[number - 1]


class Gaps(ApplicationSuite):
    """Positions are larger than the suite writes down, so in the one test that does, they are counted."""

    EXPECT_CONTIGUOUS_NOTIFICATION_IDS = False

    def test_insert_select(self):
        self.recorder_class = cast("type[LogApplicationRecorder]", type("Counted", (Counting, self.recorder_class), {}))
        super().test_insert_select()


class FromZero(TestCase):
    INITIAL_VERSION = 0


class TestAggregateInMemory(Memory, AggregateSuite): ...


class TestAggregateInMemoryWithText(Text, Memory, AggregateSuite): ...


class TestAggregateInMemoryFromZero(FromZero, Memory, AggregateSuite): ...


class TestAggregateInSqlite(Sqlite, AggregateSuite): ...


class TestAggregateInSqliteWithText(Text, Sqlite, AggregateSuite): ...


class TestAggregateInSqliteFromZero(FromZero, Sqlite, AggregateSuite): ...


class TestAggregateInPostgres(Postgres, AggregateSuite): ...


class TestAggregateInPostgresWithText(Text, Postgres, AggregateSuite): ...


class TestAggregateInPostgresFromZero(FromZero, Postgres, AggregateSuite): ...


class TestApplicationInMemory(Memory, ApplicationSuite): ...


class TestApplicationInMemoryWithText(Text, Memory, ApplicationSuite): ...


class TestApplicationInSqlite(Sqlite, ApplicationSuite): ...


class TestApplicationInSqliteWithText(Text, Sqlite, ApplicationSuite): ...


class TestApplicationInSqliteFromZero(FromZero, Sqlite, ApplicationSuite): ...


class TestApplicationInPostgres(Gaps, Postgres, ApplicationSuite): ...


class TestApplicationInPostgresWithText(Text, Gaps, Postgres, ApplicationSuite): ...


class TestApplicationInPostgresFromZero(FromZero, Gaps, Postgres, ApplicationSuite): ...


class TestProcessAsApplicationInMemory(Memory, ProcessAsApplicationSuite): ...


class TestProcessAsApplicationInSqlite(Sqlite, ProcessAsApplicationSuite): ...


class TestProcessAsApplicationInPostgres(Gaps, Postgres, ProcessAsApplicationSuite): ...


class TestTrackingInMemory(Memory, TrackingSuite): ...


class TestTrackingInSqlite(Sqlite, TrackingSuite): ...


class TestTrackingInPostgres(Postgres, TrackingSuite): ...


class TestProcessInMemory(Memory, ProcessSuite): ...


class TestProcessInMemoryWithText(Text, Memory, ProcessSuite): ...


class TestProcessInSqlite(Sqlite, ProcessSuite): ...


class TestProcessInSqliteWithText(Text, Sqlite, ProcessSuite): ...


class TestProcessInPostgres(Postgres, ProcessSuite): ...


class TestProcessInPostgresWithText(Text, Postgres, ProcessSuite): ...


class TestNonInterleavingInMemory(Memory, NonInterleavingSuite): ...


class TestNonInterleavingInSqlite(Sqlite, NonInterleavingSuite): ...


class TestNonInterleavingInPostgres(Postgres, NonInterleavingSuite): ...


class OwnTrackingRecorder(LogTrackingRecorder):
    """What a user of the library would bring."""


class FactorySuite(suites.InfrastructureFactoryTestCase):
    def expected_aggregate_recorder_class(self):
        return LogAggregateRecorder

    def expected_application_recorder_class(self):
        return LogApplicationRecorder

    def expected_tracking_recorder_class(self):
        return LogTrackingRecorder

    def tracking_recorder_subclass(self) -> type[TrackingRecorder]:
        return OwnTrackingRecorder

    def expected_process_recorder_class(self):
        return LogProcessRecorder


class TestMemoryFactory(FactorySuite):
    def setUp(self):
        self.env = Environment("Own", {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders.memory"})
        super().setUp()

    def expected_factory_class(self):
        return MemoryFactory


class TestSqliteFactory(FactorySuite):
    def setUp(self):
        path = f"{self.enterContext(tempfile.TemporaryDirectory())}/log.db"
        self.env = Environment("Own", {"PERSISTENCE_MODULE": get_topic(SqliteFactory), "SQLITE_DBNAME": path})
        super().setUp()

    def expected_factory_class(self):
        return SqliteFactory


class TestPostgresFactory(FactorySuite):
    @pytest.fixture(autouse=True)
    def server(self, postgres_url: str) -> None:
        self.env = Environment("Own", {"PERSISTENCE_MODULE": "intentlog.eventlog.recorders.postgres", "EVENTLOG_URL": postgres_url})

    def expected_factory_class(self):
        return PostgresFactory
