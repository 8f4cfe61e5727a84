"""From the environment to a log."""

from __future__ import annotations

import sqlite3

import pytest
from eventsourcing.persistence import InfrastructureFactory, OperationalError
from eventsourcing.utils import Environment, get_topic

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.recorders import LogApplicationRecorder, LogFactory, LogProcessRecorder, LogSnapshotRecorder
from intentlog.eventlog.recorders.memory import MemoryFactory
from intentlog.eventlog.recorders.sqlite import SqliteFactory

MODULE = "intentlog.eventlog.recorders"


class OwnRecorder(LogApplicationRecorder):
    pass


class OwnProcessRecorder(LogProcessRecorder):
    pass


def log_of(name: str = "", **env: str) -> EventLog:
    factory = InfrastructureFactory.construct(Environment(name, env))
    assert isinstance(factory, LogFactory)
    factory.close()
    return factory.log


def test_a_module_names_its_store(tmp_path):
    path = f"{tmp_path}/log.db"
    assert "memory://" == log_of(PERSISTENCE_MODULE=f"{MODULE}.memory", EVENTLOG_URL="sqlite:///elsewhere.db", CREATE_TABLE="no").url
    assert f"sqlite:///{path}" == log_of(PERSISTENCE_MODULE=f"{MODULE}.sqlite", SQLITE_DBNAME=path, EVENTLOG_URL="memory://").url
    assert f"sqlite:///{path}" == log_of(PERSISTENCE_MODULE=f"{MODULE}.sqlite", EVENTLOG_URL=f"sqlite:///{path}").url
    assert "memory://" == log_of(PERSISTENCE_MODULE=MODULE, EVENTLOG_URL="memory://").url


def test_an_application_has_variables_of_its_own(tmp_path):
    env = {"PERSISTENCE_MODULE": MODULE, "EVENTLOG_URL": "memory://", "BANK_EVENTLOG_URL": f"sqlite:///{tmp_path}/log.db", "BANK_EVENTLOG_CATEGORY": "account"}
    assert ("memory://", f"sqlite:///{tmp_path}/log.db") == (log_of("Shop", **env).url, log_of("Bank", **env).url)
    factory = MemoryFactory(Environment("Bank", env))
    assert ("account", "uuid") == (factory.layout.category, factory.layout.id_type)


def test_a_path_is_taken_as_it_is(tmp_path):
    path = tmp_path / "100% of it?.db"
    SqliteFactory({"SQLITE_DBNAME": str(path), "SQLITE_LOCK_TIMEOUT": " 3 "}).close()
    assert path.exists()


def test_recorders_of_ones_own_are_used():
    factory = MemoryFactory({"APPLICATION_RECORDER_TOPIC": get_topic(OwnRecorder), "PROCESS_RECORDER_TOPIC": get_topic(OwnProcessRecorder)})
    assert (OwnRecorder, OwnProcessRecorder) == (type(factory.application_recorder()), type(factory.process_recorder()))


def test_a_recorder_of_something_else_is_refused():
    factory = MemoryFactory({"PROCESS_RECORDER_TOPIC": get_topic(OwnRecorder)})
    with pytest.raises(TypeError, match=r"PROCESS_RECORDER_TOPIC names '.*:OwnRecorder', which is no subclass of LogProcessRecorder"):
        factory.process_recorder()


def test_snapshots_have_a_recorder_and_other_purposes_none():
    factory = MemoryFactory({})
    assert LogSnapshotRecorder is type(factory.aggregate_recorder("snapshots"))
    with pytest.raises(ValueError, match="not 'sketches'"):
        factory.aggregate_recorder("sketches")


WRONG = {
    "no log": ({"PERSISTENCE_MODULE": f"{MODULE}"}, "EVENTLOG_URL is set"),
    "no file": ({"PERSISTENCE_MODULE": f"{MODULE}.sqlite"}, "EVENTLOG_URL is set.*SQLITE_DBNAME"),
    "no URL": ({"PERSISTENCE_MODULE": MODULE, "EVENTLOG_URL": "log.db"}, "No store understands the log URL 'log.db'"),
    "another store": ({"PERSISTENCE_MODULE": f"{MODULE}.sqlite", "EVENTLOG_URL": "memory://"}, "'memory://' is no SQLite URL"),
    "memory by name": ({"PERSISTENCE_MODULE": f"{MODULE}.sqlite", "SQLITE_DBNAME": ":memory:"}, "recorders.memory"),
    "a timeout": ({"PERSISTENCE_MODULE": f"{MODULE}.sqlite", "SQLITE_DBNAME": "x.db", "SQLITE_LOCK_TIMEOUT": "soon"}, "SQLITE_LOCK_TIMEOUT 'soon'"),
    "an id type": ({"PERSISTENCE_MODULE": f"{MODULE}.memory", "ORIGINATOR_ID_TYPE": "int"}, "ORIGINATOR_ID_TYPE 'int'"),
    "a category": ({"PERSISTENCE_MODULE": f"{MODULE}.memory", "EVENTLOG_CATEGORY": "My-Accounts"}, "EVENTLOG_CATEGORY.*'My-Accounts'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_variable_that_is_wrong_is_named(case):
    env, fault = WRONG[case]
    with pytest.raises(OSError, match=fault):
        InfrastructureFactory.construct(env)


def test_a_log_is_not_made_where_that_is_forbidden(tmp_path):
    env = {"SQLITE_DBNAME": f"{tmp_path}/log.db", "CREATE_TABLE": "no"}
    with pytest.raises(OperationalError, match="There is no event log at"):
        SqliteFactory(env)
    SqliteFactory({**env, "CREATE_TABLE": ""}).close()
    SqliteFactory(env).close()


def test_a_database_of_the_librarys_own_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "app.db")
    connection.execute("CREATE TABLE stored_events (originator_id TEXT)")
    connection.close()
    with pytest.raises(OperationalError, match="database of something else"):
        SqliteFactory({"SQLITE_DBNAME": f"{tmp_path}/app.db"})
