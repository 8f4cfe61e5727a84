"""From the environment to a log."""

from __future__ import annotations

import sqlite3
import traceback
from contextlib import closing

import pytest
from eventsourcing.persistence import InfrastructureFactory, OperationalError
from eventsourcing.utils import Environment, get_topic
from psycopg.conninfo import conninfo_to_dict

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.recorders import LogApplicationRecorder, LogFactory, LogProcessRecorder, LogSnapshotRecorder
from intentlog.eventlog.recorders.memory import MemoryFactory
from intentlog.eventlog.recorders.postgres import PostgresFactory
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


def test_the_librarys_variables_name_a_schema(postgres_server):
    url = postgres_server.create_database()
    server = conninfo_to_dict(url)
    env = {
        "POSTGRES_DBNAME": str(server["dbname"]),
        "POSTGRES_HOST": str(server["host"]),
        "POSTGRES_PORT": str(server["port"]),
        "POSTGRES_USER": str(server["user"]),
        "POSTGRES_PASSWORD": str(server.get("password", "p@ss: /?w%rd")),
        "POSTGRES_SCHEMA": "bank",
        "POSTGRES_POOL_SIZE": "3",
        "POSTGRES_CONNECT_TIMEOUT": " 5 ",
    }
    log = log_of(PERSISTENCE_MODULE=f"{MODULE}.postgres", EVENTLOG_URL="memory://", **env)
    assert "p@ss" not in log.url and ":***@" in log.url
    with closing(open_log(f"{url}?schema=bank", create=False)) as made:
        assert [] == list(made.streams())
    postgres_server.drop_database(url)


def test_a_password_is_in_no_error():
    env = {"POSTGRES_DBNAME": "x", "POSTGRES_HOST": "127.0.0.1", "POSTGRES_PORT": "1", "POSTGRES_USER": "me", "POSTGRES_PASSWORD": "hunter2"}
    with pytest.raises(OperationalError) as refused:
        PostgresFactory({**env, "POSTGRES_CONNECT_TIMEOUT": "2"})
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(OSError, match="is no PostgreSQL URL") as wrong:
        PostgresFactory({"EVENTLOG_URL": "mysql://me:hunter2@db/x"})
    assert "hunter2" not in str(wrong.value)


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
    "no database": ({"PERSISTENCE_MODULE": f"{MODULE}.postgres"}, "EVENTLOG_URL is set.*POSTGRES_DBNAME"),
    "a store by another name": ({"PERSISTENCE_MODULE": f"{MODULE}.postgres", "EVENTLOG_URL": "memory://"}, "begins with 'memory', so it is no PostgreSQL URL"),
    "a port": ({"PERSISTENCE_MODULE": f"{MODULE}.postgres", "POSTGRES_DBNAME": "x", "POSTGRES_PORT": "db"}, "POSTGRES_PORT 'db'"),
    "a schema": ({"PERSISTENCE_MODULE": f"{MODULE}.postgres", "POSTGRES_DBNAME": "x", "POSTGRES_SCHEMA": "My Log"}, "schema='My Log'"),
    "a password asked for": (
        {"PERSISTENCE_MODULE": f"{MODULE}.postgres", "POSTGRES_DBNAME": "x", "POSTGRES_GET_PASSWORD_TOPIC": "mod:f"},
        "POSTGRES_GET_PASSWORD_TOPIC is not supported.*PGPASSFILE",
    ),
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
