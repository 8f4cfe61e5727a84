"""The commands on a log in PostgreSQL: passwords, errors that name the way out, completion, a terminal, and no transaction kept open."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from intentlog.eventlog.log import AppendRequest, StreamAppend
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing.maker import event
from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import begin, call, child, eventually
from tests.services.postgres import PostgresServer

PASSWORD = "hunter2/@x"
QUOTED = "hunter2%2F%40x"


@pytest.fixture
def log(postgres_url: str, shop: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty log that every command finds by itself, and ``shop.py``."""
    monkeypatch.setenv("EVENTLOG_URL", postgres_url)
    assert 0 == call("init").exit_code
    return postgres_url


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The URL of a database on a server that asks ``ann`` for a password, without the password."""
    with PostgresServer() as server:
        server.start()
        url = server.create_database()
        access = server.data / "pg_hba.conf"
        access.write_text("host all ann 127.0.0.1/32 scram-sha-256\n" + access.read_text())
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET password_encryption = 'scram-sha-256'")
            connection.execute(f"CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{PASSWORD}'".encode())
            connection.execute("SELECT pg_reload_conf()")
        theirs = url.replace("//postgres@", "//ann@")
        eventually(lambda: _refused(theirs))
        yield theirs


def _refused(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return True
    return False


def test_every_command_finds_the_log_by_its_environment(log, shop):
    for words in (
        ("send", "orders", "bob", "order.placed", '{"order_id": "o-1"}', "--app", "shop:app"),
        ("send", "notes", "eve", '"hello"'),
        ("run", "shop:app", "--until-idle"),
        ("worker", "shop:app", "--until-idle"),
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
        ("signal", "notes", "eve", "hello"),
        ("grants", "--reader", "ann"),
    ):
        done = call(*words)
        assert 0 == done.exit_code, (words, done.output)
    assert {"completed"} == {json.loads(line)["state"] for line in call("streams", "--json").stdout.splitlines()}
    assert 3 == call("dead-letters", "redrive", "orders-bob").exit_code
    assert 3 == call("cancel", "orders", "bob").exit_code


@pytest.mark.parametrize("way", ["url", "parameter", "PGPASSWORD", "PGPASSFILE", "passfile"])
def test_a_password_is_found_wherever_libpq_looks_and_never_shown(guarded, way, tmp_path, monkeypatch):
    place = urlsplit(guarded)
    file = tmp_path / "pgpass"
    file.write_text(f"127.0.0.1:{place.port}:*:ann:{PASSWORD}\n")
    file.chmod(0o600)
    url, environment = {
        "url": (guarded.replace("//ann@", f"//ann:{QUOTED}@"), {}),
        "parameter": (f"{guarded}?password={QUOTED}", {}),
        "PGPASSWORD": (guarded, {"PGPASSWORD": PASSWORD}),
        "PGPASSFILE": (guarded, {"PGPASSFILE": str(file)}),
        "passfile": (f"{guarded}?passfile={file}", {}),
    }[way]
    for name, value in {"EVENTLOG_URL": url, **environment}.items():
        monkeypatch.setenv(name, value)
    for words, code in (
        (("init",), 0),
        (("init", "--json"), 0),
        (("send", "orders", way, '"x"'), 0),
        (("tail",), 0),
        (("show", "orders-nobody"), 3),
        (("streams", "--log", url.replace("/intentlog_test", "/no_such")), 3),
        (("--debug", "show", "orders-nobody"), 3),
        (("grants", "--reader", "ann"), 0),
    ):
        done = call(*words)
        assert code == done.exit_code, (words, done.stderr)
        assert "hunter2" not in done.stdout + done.stderr, words


def test_a_wrong_password_is_told_and_not_shown(guarded):
    for words in (("init",), ("tail",)):
        done = child(*words, EVENTLOG_URL=guarded.replace("//ann@", "//ann:wrong-secret@"), EVENTLOG_DEBUG="1")
        assert (3, True) == (done.returncode, "password authentication failed" in done.stderr)
        assert "wrong-secret" not in done.stdout + done.stderr
    done = child("tail", EVENTLOG_URL=guarded)
    assert (3, True) == (done.returncode, "no password supplied" in done.stderr)


@pytest.mark.parametrize(
    "old, new, code, told",
    [
        ("127.0.0.1", "no-such-host.invalid", 3, "Check that the server runs"),
        (":{port}/", ":1/", 3, "Check that the server runs"),
        ("/intentlog_test", "/no_such", 3, "createdb"),
        ("//postgres@", "//nobody_here@", 3, "lets this user in"),
        ("?", "?schema=elsewhere&", 3, "eventlog init"),
        ("?", "?schema=Bad-Name&", 2, "schema=intentlog"),
        ("?", "?pool_size=many&", 2, "for example 10"),
        ("?", "?shema=x&", 2, "schema"),
        ("postgresql://", "postgersql://", 2, "postgresql://"),
    ],
)
def test_what_is_wrong_with_a_url_is_told_with_the_way_out(postgres_url, old, new, code, told):
    port = urlsplit(postgres_url).port
    url = f"{postgres_url}?connect_timeout=5".replace(old.format(port=port), new, 1)
    for words in (("streams",), ("send", "a", "b", '"x"'), ("tail", "-f")):
        done = call(*words, "--log", url)
        assert (code, "") == (done.exit_code, done.stdout), done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_names_of_streams_are_completed(log):
    for key in ("bob", "bill", "eve"):
        call("send", "orders", key, '"x"')
    assert ["plain,orders-bill", "plain,orders-bob"] == completed(log)
    assert [] == completed(log + "_not")


def completed(url: str) -> list[str]:
    """What bash is given for ``eventlog show orders-b``."""
    return child(_EVENTLOG_COMPLETE="bash_complete", COMP_WORDS="eventlog show orders-b", COMP_CWORD="2", EVENTLOG_URL=url).stdout.split()


def sessions(url: str) -> list[tuple[str, bool, bool]]:
    """Of each connection of ours to the database: what it does, and whether a transaction or a snapshot of it is open."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(
            "SELECT state, xact_start IS NOT NULL, backend_xmin IS NOT NULL OR backend_xid IS NOT NULL FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name LIKE 'intentlog%'"
        ).fetchall()


def test_a_command_that_follows_holds_no_transaction_open(log):
    call("send", "orders", "bob", '"x"')
    following = begin("tail", "-f")
    try:
        assert following.stdout is not None
        assert "orders-bob" in following.stdout.readline()
        call("send", "orders", "eve", '"x"')
        assert "orders-eve" in following.stdout.readline()
        eventually(lambda: bool(sessions(log)) and all(each == ("idle", False, False) for each in sessions(log)))
        looks = [sessions(log) for _ in range(40)]
        # A look at the log takes a moment now and then; nothing stays.
        assert not any(each[0].startswith("idle in transaction") for look in looks for each in look)
        assert 30 < sum(all(not each[1] for each in look) for look in looks)
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    assert 130 == following.returncode


@pytest.mark.parametrize("words", [("tail", "--after", "0"), ("show", "orders-bob"), ("streams",)])
def test_a_command_whose_reader_takes_its_time_holds_no_transaction_open(log, words):
    with closing(open_log(log)) as filled:
        filled.append("orders-bob", [event(b"\xa1x" if n else b"\xa1y") for n in range(5_000)], -1)
        for begun in range(0, 3_000, 500):
            filled.append_batch([request(n) for n in range(begun, begun + 500)])
    pager = begin(*words)
    try:
        # The pipe is full, and the command waits for whoever reads it.
        eventually(lambda: pager.poll() is None and _sleeps_writing(pager.pid), 30)
        assert not any(transaction or snapshot or state != "idle" for state, transaction, snapshot in sessions(log))
    finally:
        shown, _ = pager.communicate(timeout=60)
    assert 0 == pager.returncode
    assert 3_000 < len(shown.splitlines())


def request(number: int) -> AppendRequest:
    return AppendRequest([StreamAppend(f"orders-{'x' * 60}{number}", [event()], -1)])


def _sleeps_writing(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text() in ("pipe_write", "anon_pipe_write") or "pipe_w" in Path(f"/proc/{pid}/stack").read_text()


def test_on_a_terminal_tables_fit_and_the_password_stays_hidden(guarded, tmp_path):
    url = guarded.replace("//ann@", f"//ann:{QUOTED}@") + "?schema=terminal"
    shown = ""
    for words in (("init",), ("send", "orders", "kim", '"x"'), ("streams",), ("tail",), ("show", "orders-nobody")):
        shown += on_terminal(url, *words)
    assert "hunter2" not in shown
    assert "ann:***@" in shown
    assert "queued" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert plain != shown
    assert [] == [line for line in plain.splitlines() if len(line) > 80 and not re.match("eventlog: |postgresql://|orders-kim ", line)]


def on_terminal(url: str, *words: str) -> str:
    """What a person sees in a terminal of 80 columns."""
    reader, writer = pty.openpty()
    settings = {**os.environ, "EVENTLOG_URL": url, "COLUMNS": "80", "TERM": "xterm"}
    running = subprocess.Popen([*PROGRAM, *words], env=settings, stdin=writer, stdout=writer, stderr=writer)
    os.close(writer)
    shown = b""
    try:
        while piece := os.read(reader, 65_536):
            shown += piece
    except OSError:  # Linux: the other end is gone
        pass
    finally:
        os.close(reader)
        running.wait(60)
    return shown.decode()
