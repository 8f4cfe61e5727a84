"""Making the tables, bringing them up to date, and refusing what is not ours."""

from __future__ import annotations

import subprocess
import sys
import time

import psycopg
import pytest

from intentlog.eventlog.errors import LogUnavailable, StoreSchemaError
from intentlog.eventlog.opening import open_log, prepare_log
from intentlog.eventlog.postgres import schema as schemas
from intentlog.eventlog.postgres.address import parse_address
from intentlog.eventlog.postgres.schema import MIGRATIONS, TABLES, prepare_schema
from intentlog.eventlog.postgres.statements import statement
from intentlog.eventlog.testing.maker import event, events, together
from intentlog.eventlog.versions import ANY


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def ask(url: str, question: str) -> list[tuple]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question.encode()).fetchall()


def test_a_log_is_only_made_when_it_may_be(postgres_url):
    for create, read_only in ((False, False), (True, True)):
        with pytest.raises(StoreSchemaError, match="eventlog init"):
            open_log(postgres_url, create=create, read_only=read_only)
    assert [] == ask(postgres_url, "SELECT 1 FROM pg_namespace WHERE nspname = 'intentlog'")
    open_log(postgres_url).close()
    open_log(postgres_url, create=False).close()


def test_preparing_says_whether_there_was_anything_to_do(postgres_url):
    assert [True, False, False] == [prepare_log(postgres_url) for _ in range(3)]
    assert [(len(MIGRATIONS),)] == ask(postgres_url, "SELECT schema_version FROM intentlog.meta")


def test_two_schemas_of_one_database_are_two_logs(postgres_url):
    one, two = open_log(f"{postgres_url}?schema=one"), open_log(f"{postgres_url}?schema=two")
    one.append("a-1", events(2), -1)
    assert (1, -1) == (one.head("a-1"), two.head("a-1"))
    assert 0 == two.last_position()
    one.close()
    two.close()


def test_a_search_path_in_the_url_leads_to_no_other_log(postgres_url):
    for options in ("-csearch_path%3Done", "-c%20search_path%3Done%2Cpublic", "--search_path%3Done", "-c%20SEARCH_PATH%3Done"):
        one, two = open_log(f"{postgres_url}?schema=one"), open_log(f"{postgres_url}?schema=two&options={options}")
        two.append("a-1", [event()], ANY)
        two.checkpoints.save("mine", 1)
        assert (-1, {}) == (one.head("a-1"), one.checkpoints.all())
        one.close()
        two.close()
    assert prepare_log(f"{postgres_url}?schema=three&options=-csearch_path%3Done")
    assert [(len(TABLES),)] == ask(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'three'")


def test_many_that_make_one_log_at_once_make_one(postgres_url):
    made = together(*[lambda: prepare_log(postgres_url) for _ in range(8)])
    assert any(made)
    log = open_log(postgres_url, create=False)
    log.append("a-1", [event()], -1)
    log.close()


def test_processes_that_make_one_log_at_once_make_one(postgres_url):
    script = "import sys; from intentlog.eventlog.opening import open_log; open_log(sys.argv[1]).append('a-1', [], -1)"
    running = [subprocess.Popen([sys.executable, "-c", script, postgres_url]) for _ in range(3)]
    assert [0, 0, 0] == [each.wait(60) for each in running]
    assert [(len(MIGRATIONS),)] == ask(postgres_url, "SELECT schema_version FROM intentlog.meta")


def test_a_log_of_an_older_release_is_brought_up_to_date_with_its_data(postgres_url, monkeypatch):
    monkeypatch.setattr(schemas, "MIGRATIONS", MIGRATIONS[:1])
    prepare_log(postgres_url)
    run(
        postgres_url,
        "INSERT INTO intentlog.streams (name, category) VALUES ('a-1', 'a')",
        "INSERT INTO intentlog.events (position, stream_id, version, recorded_at, schema, event_id, type, data) "
        r"SELECT pg_current_xact_id()::text::bigint << 20 | 1, 1, 0, 7, 1, '\x00000000000000000000000000000000', 'k', 'old' FROM intentlog.streams",
    )
    monkeypatch.undo()
    with pytest.raises(StoreSchemaError, match=f"older release .schema 1, this one has {len(MIGRATIONS)}"):
        open_log(postgres_url, create=False)
    assert [True, False] == [prepare_log(postgres_url) for _ in range(2)]
    log = open_log(postgres_url)
    log.append("a-1", [event(b"new")], 0)
    assert [(0, b"old"), (1, b"new")] == [(found.version, found.data) for found in log.read_all()]
    log.close()


def test_a_migration_that_fails_leaves_nothing_behind(postgres_url, monkeypatch):
    monkeypatch.setattr(schemas, "MIGRATIONS", MIGRATIONS[:1])
    prepare_log(postgres_url)
    monkeypatch.setattr(schemas, "MIGRATIONS", (MIGRATIONS[0], "no such"))
    monkeypatch.setattr(schemas, "statement", lambda name: "CREATE TABLE half (); SELECT nonsense" if name == "no such" else statement(name))
    with pytest.raises(StoreSchemaError, match="nonsense"):
        prepare_log(postgres_url)
    assert [(1,)] == ask(postgres_url, "SELECT schema_version FROM intentlog.meta")
    monkeypatch.undo()
    assert [] == ask(postgres_url, "SELECT 1 FROM pg_class WHERE relname = 'half'")
    assert prepare_log(postgres_url)


def test_a_process_killed_while_it_makes_the_log_leaves_none_that_is_half_made(postgres_url):
    """The next one finds no log, which ``create`` mends, and not one of an older release, which only the owner may bring up to date."""
    run(
        postgres_url,
        "CREATE FUNCTION public.dawdle() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); END $$",
        "CREATE EVENT TRIGGER dawdling ON ddl_command_end WHEN TAG IN ('CREATE VIEW') EXECUTE FUNCTION public.dawdle()",
    )
    sleeps = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    script = "import sys; from intentlog.eventlog.opening import open_log; open_log(sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", script, postgres_url]) as making:
        while not (asleep := ask(postgres_url, sleeps)):
            assert making.poll() is None
            time.sleep(0.02)
        making.kill()
    run(postgres_url, f"SELECT pg_terminate_backend({asleep[0][0]}, 10000)", "DROP EVENT TRIGGER dawdling")
    with pytest.raises(StoreSchemaError, match="holds no event log yet"):
        open_log(postgres_url, create=False)
    open_log(postgres_url).close()


def test_a_log_of_a_newer_release_is_refused(postgres_url):
    prepare_log(postgres_url)
    run(postgres_url, "UPDATE intentlog.meta SET schema_version = 99")
    for opening in (open_log, prepare_log):
        with pytest.raises(StoreSchemaError, match=r"newer release.*99.*Upgrade intentlog"):
            opening(postgres_url)


def test_a_schema_of_something_else_is_left_alone(postgres_url):
    run(postgres_url, "CREATE SCHEMA theirs", "CREATE TABLE theirs.events (a int)", "CREATE SCHEMA named", "CREATE TABLE named.meta (schema_version text)")
    with pytest.raises(StoreSchemaError, match=r"tables of something else.*schema="):
        open_log(f"{postgres_url}?schema=theirs")
    with pytest.raises(StoreSchemaError, match=r"named\.meta.*something else"):
        open_log(f"{postgres_url}?schema=named")
    assert [("events",)] == ask(postgres_url, "SELECT relname FROM pg_class WHERE relnamespace = 'theirs'::regnamespace")


@pytest.mark.parametrize("table", [table for table in TABLES if table != "meta"])
def test_a_table_that_somebody_dropped_is_named(postgres_url, table):
    prepare_log(postgres_url)
    run(postgres_url, f"DROP TABLE intentlog.{table} CASCADE")
    with pytest.raises(StoreSchemaError, match=f"lacks its table {table}:"):
        open_log(postgres_url)


@pytest.mark.parametrize("part", ["FUNCTION append_events", "FUNCTION check_unchanged", "FUNCTION moment(bigint)", "VIEW lag", "VIEW history"])
def test_a_function_or_view_that_somebody_dropped_is_made_anew_by_init(postgres_url, part):
    prepare_log(postgres_url)
    log = open_log(postgres_url)
    log.append("a-1", [event()], ANY)
    run(postgres_url, f"DROP {part.replace(' ', ' intentlog.', 1)} CASCADE")
    assert [True, False] == [prepare_log(postgres_url) for _ in range(2)]
    log.append("a-1", [event()], ANY)
    assert [(2,)] == ask(postgres_url, "SELECT count(*) FROM intentlog.history")
    assert [] == ask(postgres_url, "SELECT * FROM intentlog.lag")
    log.close()


def test_many_that_make_functions_anew_at_once_all_succeed(postgres_url):
    prepare_log(postgres_url)
    run(postgres_url, "DROP FUNCTION intentlog.append_events")
    assert any(together(*[lambda: prepare_log(postgres_url) for _ in range(6)]))
    assert not prepare_log(postgres_url)


def test_a_writer_without_one_of_the_functions_is_told_how_to_get_it_back(postgres_url):
    log = open_log(postgres_url)
    run(postgres_url, "DROP FUNCTION intentlog.append_events")
    with pytest.raises(StoreSchemaError, match=r"append_events.*No event is lost.*eventlog init"):
        log.append("a-1", [event()], ANY)
    log.close()


def test_functions_are_not_made_anew_by_a_role_that_does_not_own_the_schema(postgres_url):
    role = f"no_owner_{postgres_url[-6:]}"
    prepare_log(postgres_url)
    run(postgres_url, f"CREATE ROLE {role} LOGIN", f"GRANT USAGE ON SCHEMA intentlog TO {role}", f"GRANT SELECT ON ALL TABLES IN SCHEMA intentlog TO {role}")
    try:
        run(postgres_url, "DROP VIEW intentlog.lag")
        with pytest.raises(StoreSchemaError, match=r"eventlog init as a role that owns"):
            prepare_log(postgres_url.replace("//postgres@", f"//{role}@"))
    finally:
        run(postgres_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_database_that_is_not_there_is_told_from_a_server_that_is_not(postgres_url):
    with pytest.raises(StoreSchemaError, match="createdb"):
        open_log(f"{postgres_url}_not")
    with pytest.raises(LogUnavailable, match="no connection to") as refused:
        open_log("postgresql://me:hunter2@127.0.0.1:1/log")
    assert isinstance(refused.value.__cause__, psycopg.OperationalError)
    assert "hunter2" not in str(refused.value)


def test_a_database_that_cannot_hold_all_text_is_refused(postgres_url):
    run(postgres_url, "DROP DATABASE IF EXISTS intentlog_latin", "CREATE DATABASE intentlog_latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    latin = postgres_url.rpartition("/")[0] + "/intentlog_latin"
    try:
        with pytest.raises(StoreSchemaError, match=r"LATIN1.*UTF8"):
            open_log(latin)
    finally:
        run(postgres_url, "DROP DATABASE intentlog_latin")


def test_a_role_without_the_right_to_make_the_log_is_told_who_can(postgres_url):
    role = f"may_nothing_{postgres_url[-6:]}"
    theirs = postgres_url.replace("//postgres@", f"//{role}@")
    run(postgres_url, f"CREATE ROLE {role} LOGIN")
    try:
        with pytest.raises(StoreSchemaError, match=r"eventlog init as a role that owns"):
            open_log(theirs)
        prepare_log(postgres_url)
        with pytest.raises(StoreSchemaError, match=r"GRANT USAGE ON SCHEMA intentlog"):
            open_log(theirs)
        run(postgres_url, f"GRANT USAGE ON SCHEMA intentlog TO {role}", f"GRANT SELECT ON ALL TABLES IN SCHEMA intentlog TO {role}")
        log = open_log(theirs)
        assert 0 == log.last_position()
        with pytest.raises(StoreSchemaError, match=r"GRANT SELECT .and INSERT"):
            log.append("a-1", [event()], ANY)
        log.close()
    finally:
        run(postgres_url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_a_log_restored_into_a_server_with_lower_ids_goes_on_behind_its_last_event(postgres_url):
    log = open_log(postgres_url)
    log.append("a-1", events(2), -1)
    log.close()
    run(postgres_url, "UPDATE intentlog.events SET position = position + (1000000::bigint << 20)")
    with pytest.raises(StoreSchemaError, match=r"restored into a server.*eventlog init"):
        open_log(postgres_url)
    with pytest.raises(StoreSchemaError, match="restored into a server"):
        open_log(postgres_url, read_only=True)
    assert [True, False] == [prepare_log(postgres_url) for _ in range(2)]
    log = open_log(postgres_url)
    assert 2 == len(list(log.read_all()))
    log.append("a-1", [event(b"after")], 1)
    log.append("b-1", [event(b"new")], -1)
    assert [("a-1", 0), ("a-1", 1), ("a-1", 2), ("b-1", 0)] == [(found.stream, found.version) for found in log.read_all()]
    log.close()


def test_appends_that_race_with_the_mending_of_a_restored_log_keep_the_order(postgres_url):
    log = open_log(postgres_url)
    log.append("a-1", events(1), -1)
    run(postgres_url, "UPDATE intentlog.events SET position = position + (1000::bigint << 20)")

    def write() -> None:
        for _ in range(40):
            log.append("b-1", [event()], ANY)

    together(write, lambda: [prepare_schema(parse_address(postgres_url), create=True, repair=True) for _ in range(3)])
    found = [row.version for row in log.read("b-1")]
    assert list(range(40)) == found
    mended = [row.position for row in log.read("b-1")]
    assert sorted(mended) == mended
    log.close()


_VIEWS = "SELECT viewname, definition FROM pg_views WHERE schemaname = 'intentlog' ORDER BY viewname"


@pytest.mark.parametrize("seen", range(1, len(MIGRATIONS)))
def test_an_older_schema_ends_with_the_same_views_as_a_new_one(postgres_url, monkeypatch, seen):
    with monkeypatch.context() as older:
        older.setattr(schemas, "MIGRATIONS", MIGRATIONS[:seen])
        prepare_schema(parse_address(postgres_url), create=True)
    prepare_schema(parse_address(postgres_url), create=True)
    brought_up = ask(postgres_url, _VIEWS)
    run(postgres_url, "DROP SCHEMA intentlog CASCADE")
    prepare_schema(parse_address(postgres_url), create=True)
    assert brought_up == ask(postgres_url, _VIEWS)
    assert any("intent.readmitted" in definition for _, definition in brought_up)
