"""What the printed grants allow, and what they do not: every kind of user does its work as its own role, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from intentlog.eventlog.errors import StoreSchemaError
from intentlog.eventlog.log import ParkedEvent
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.postgres.grants import WRITES
from intentlog.eventlog.postgres.schema import TABLES
from intentlog.eventlog.testing.maker import event
from tests.cli.conftest import begin, eventually
from tests.eventlog.postgres.shop import approve, call, done, make_shop, send, told

KINDS = tuple(WRITES)
APPEND = (
    "SELECT intentlog.append_events(1, '{a-1}', '{a}', '{-1}', '{1}', '{1}', '{1}', '{1}', '{1}', '{x}', '{NULL}', '{NULL}', '{k}', '{NULL}', '{a}', "
    "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"
)


@pytest.fixture
def roles(postgres_url: str) -> Iterator[dict[str, str]]:
    """Kind of user → URL as a role of that kind; ``owner`` is who made the log."""
    suffix = postgres_url[-6:]
    names = {kind: f"{kind}_{suffix}" for kind in KINDS}
    done("init", "--log", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for name in names.values():
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        connection.execute(done("grants", *(word for kind, name in names.items() for word in (f"--{kind}", name)), "--log", postgres_url).encode())
        yield {"owner": postgres_url} | {kind: postgres_url.replace("//postgres@", f"//{name}@") for kind, name in names.items()}
        for name in names.values():
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())


def allowed(url: str, statement: str) -> bool:
    """Whether the role may, its own read-only setting taken off; nothing of it is kept."""
    with psycopg.connect(url) as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.commit()
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege:
            return False
        finally:
            connection.rollback()
        return True


def first_column(url: str, table: str) -> str:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum LIMIT 1", (f"intentlog.{table}",)
        ).fetchone()
    assert found is not None
    return str(found[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_role_may_write_what_its_kind_needs_and_read_everything(roles, kind):
    for table in TABLES:
        rights = WRITES[kind].get(table, "")
        column = first_column(roles["owner"], table)
        tries = {
            "SELECT": f"SELECT * FROM intentlog.{table}",
            "INSERT": f"INSERT INTO intentlog.{table} OVERRIDING SYSTEM VALUE SELECT * FROM intentlog.{table} WHERE false",
            # To another value of its own type; an identity takes only its default.
            "UPDATE": f"UPDATE intentlog.{table} SET {column} = DEFAULT WHERE false",
            "DELETE": f"DELETE FROM intentlog.{table} WHERE false",
            "TRUNCATE": f"TRUNCATE intentlog.{table}",
            "LOCK": f"LOCK TABLE intentlog.{table} IN ACCESS EXCLUSIVE MODE",
        }
        may = {name for name, statement in tries.items() if allowed(roles[kind], statement)}
        expected = {"SELECT", *filter(None, rights.split(", "))}
        # Whoever may update or delete may lock a table, and nobody else.
        assert expected == may - {"LOCK"}, table
        assert ("LOCK" in may) == bool(expected & {"UPDATE", "DELETE"}), table


@pytest.mark.parametrize("kind", KINDS)
def test_no_role_changes_tables_or_functions(roles, kind):
    for statement in (
        "CREATE TABLE intentlog.mine (a int)",
        "ALTER TABLE intentlog.events ADD COLUMN mine int",
        "DROP TABLE intentlog.events",
        "CREATE INDEX ON intentlog.events (type)",
        "CREATE OR REPLACE VIEW intentlog.runs AS SELECT 1",
        "DROP FUNCTION intentlog.fields(bytea)",
        "ALTER TABLE intentlog.events DISABLE TRIGGER ALL",
        "DROP SCHEMA intentlog CASCADE",
        "UPDATE intentlog.meta SET schema_version = 99",
    ):
        assert not allowed(roles[kind], statement), statement


def test_a_reader_cannot_write_through_functions_either(roles):
    for statement in (
        "SELECT intentlog.move_schedule('{turn}', '{a-1}', '{NULL}', '{0}', '{1}', '{1}')",
        "SELECT intentlog.begin_append('{a-1}', '{a}', '{-1}', '{1}')",
        APPEND,
    ):
        set_path = "SET LOCAL search_path = intentlog; "
        assert not allowed(roles["reader"], set_path + statement), statement
        assert allowed(roles["worker"], set_path + statement), statement


def test_a_reader_looks_with_every_command_and_writes_with_none(roles, tmp_path, monkeypatch):
    make_shop(tmp_path, monkeypatch)
    send(roles["owner"], "orders", "bob", "book")
    done("run", "shop:app", "--until-idle", "--log", roles["owner"])
    before = told("tail", "--log", roles["owner"])
    reader = ("--log", roles["reader"])
    for words in (
        ("streams",),
        ("show", "orders-bob"),
        ("state", "orders-bob", "--app", "shop:app"),
        ("replay", "--all", "--app", "shop:app"),
        ("verify", "--app", "shop:app"),
        ("tail",),
        ("stats",),
        ("dead-letters", "list"),
        ("approvals", "list"),
        ("intents", "list"),
        ("projections", "list"),
        ("projections", "lag"),
    ):
        done(*words, *reader)
    for writing in (("send", "orders", "eve", "-", '"x"'), ("signal", "orders", "bob", "hello"), ("run", "shop:app", "--until-idle")):
        refused = call(*writing, *reader)
        assert (3, True) == (refused.exit_code, "GRANT" in refused.stderr), refused.output
    assert before == told("tail", "--log", roles["owner"])
    for view in ("history", "runs", "waiting", "intents", "dead_letters", "lag"):
        assert allowed(roles["reader"], f"SELECT * FROM intentlog.{view}")


def test_worker_and_effector_do_a_days_work_as_their_own_roles(roles, tmp_path, monkeypatch):
    make_shop(tmp_path, monkeypatch)
    worker, effector = roles["worker"], roles["effector"]
    for key, text in (("ann", "book"), ("bob", "heavy"), ("cid", "angry"), ("dan", "x" * 100_000)):
        send(worker, "orders", key, text)
    send(worker, "desk", "ann", "Pay?")
    done("worker", "shop:app", "--until-idle", "--log", worker)
    hands = begin("effector", "--registry", "shop:app", "--health-port", "0", "--log", effector)
    try:
        eventually(lambda: len(told("tail", "--type", "intent.settled", "--log", roles["reader"])) == 3, 30)
    finally:
        hands.terminate()
        said = hands.communicate(timeout=30)
    assert 0 == hands.returncode, said
    done("worker", "shop:app", "--until-idle", "--log", worker)
    approve(worker, "desk-ann")
    done("signal", "desk", "ann", "customer.reply", '"thanks"', "--log", worker)
    done("worker", "shop:app", "--until-idle", "--log", worker)
    done("dead-letters", "redrive", "orders-cid", "--log", worker)
    done("worker", "shop:app", "--until-idle", "--log", worker)
    states = {each["stream"]: each["state"] for each in told("streams", "--log", roles["reader"])}
    assert {"orders-ann": "completed", "orders-bob": "completed", "orders-cid": "parked", "orders-dan": "completed", "desk-ann": "completed"} == states
    with closing(open_log(effector)) as log, pytest.raises(StoreSchemaError, match="GRANT"):
        log.append("orders-new", [event()], -1)


def test_a_projector_builds_and_drops_views_and_appends_nothing(roles):
    with closing(open_log(roles["projector"])) as log:
        with log.views.transaction("open@v1") as view:
            view.put("a", b"1")
            view.put("b", b"2")
            view.delete("b")
            view.park(ParkedEvent("open@v1", 3, "a-1", 0, "ValueError: no", 1))
            view.checkpoint(7)
        log.views.point("open", "open@v1", expected=None)
        log.views.clear("open@v1")
        with pytest.raises(StoreSchemaError, match="GRANT"):
            log.append("a-1", [event()], -1)


def test_grants_take_back_what_is_too_much(roles):
    with psycopg.connect(roles["owner"], autocommit=True) as connection:
        name = roles["reader"].split("//")[1].split("@")[0]
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA intentlog TO {name}".encode())
        assert allowed(roles["reader"], "DELETE FROM intentlog.events")
        connection.execute(done("grants", "--reader", name, "--log", roles["owner"]).encode())
    assert not allowed(roles["reader"], "DELETE FROM intentlog.events")


def test_grants_are_printed_for_any_name_and_no_log_of_files(roles):
    url = "postgresql://me:hunter2@nowhere/log?schema=shop"
    printed = done("grants", "--worker", 'od"d', "--effector", 'od"d', "--log", url)
    assert 'GRANT INSERT ON shop.streams TO "od""d";' in printed
    assert 'GRANT INSERT, UPDATE ON shop.checkpoints TO "od""d";' in printed
    assert "hunter2" not in printed
    for words, why in ((("--reader", "a\nb", "--log", url), "printable"), (("--log", url), "--projector"), (("--reader", "a"), "SQLite")):
        refused = call("grants", *words)
        assert (2, True) == (refused.exit_code, why in refused.stderr), refused.output
