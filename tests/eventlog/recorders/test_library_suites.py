"""The library's own suites, over each store, with UUIDs and with text for ids. Importing them needs pycryptodome."""

from __future__ import annotations

import tempfile
import uuid
from typing import Any, Literal
from unittest import TestCase

from eventsourcing.persistence import TrackingRecorder
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
from intentlog.eventlog.recorders.sqlite import SqliteFactory


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


class FromZero(TestCase):
    INITIAL_VERSION = 0


class TestAggregateInMemory(Memory, AggregateSuite): ...


class TestAggregateInMemoryWithText(Text, Memory, AggregateSuite): ...


class TestAggregateInMemoryFromZero(FromZero, Memory, AggregateSuite): ...


class TestAggregateInSqlite(Sqlite, AggregateSuite): ...


class TestAggregateInSqliteWithText(Text, Sqlite, AggregateSuite): ...


class TestAggregateInSqliteFromZero(FromZero, Sqlite, AggregateSuite): ...


class TestApplicationInMemory(Memory, ApplicationSuite): ...


class TestApplicationInMemoryWithText(Text, Memory, ApplicationSuite): ...


class TestApplicationInSqlite(Sqlite, ApplicationSuite): ...


class TestApplicationInSqliteWithText(Text, Sqlite, ApplicationSuite): ...


class TestApplicationInSqliteFromZero(FromZero, Sqlite, ApplicationSuite): ...


class TestProcessAsApplicationInMemory(Memory, ProcessAsApplicationSuite): ...


class TestProcessAsApplicationInSqlite(Sqlite, ProcessAsApplicationSuite): ...


class TestTrackingInMemory(Memory, TrackingSuite): ...


class TestTrackingInSqlite(Sqlite, TrackingSuite): ...


class TestProcessInMemory(Memory, ProcessSuite): ...


class TestProcessInMemoryWithText(Text, Memory, ProcessSuite): ...


class TestProcessInSqlite(Sqlite, ProcessSuite): ...


class TestProcessInSqliteWithText(Text, Sqlite, ProcessSuite): ...


class TestNonInterleavingInMemory(Memory, NonInterleavingSuite): ...


class TestNonInterleavingInSqlite(Sqlite, NonInterleavingSuite): ...


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
