"""A server lives as long as the test session that started it, however that ends; where there is none, the tests say so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.house.tree import ROOT, python

STARTS = """
import json, os, time
from pathlib import Path

def test_a_server_is_started(request):
    server = request.getfixturevalue(os.environ["SERVER"])
    told = {"port": server.port, "folder": str(server.folder)}
    Path("told.new").write_text(json.dumps(told))
    os.rename("told.new", "told")
    while "WAITS" in os.environ:
        time.sleep(0.05)
"""
USES = """
import os
from pathlib import Path

def test_an_address_is_given(request):
    Path("url").write_text(request.getfixturevalue(os.environ["ADDRESS"]))
"""
# No other plugins than these: loading Hypothesis takes five times as long as what is looked at here.
PLUGINS = ("-p", "no:cacheprovider", "-p", "xdist.plugin", "-p", "pytest_timeout")
# A session that is no part of this one, and starts its own server unless it is told of another.
OWN = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_XDIST_WORKER": "", "EVENTLOG_TEST_POSTGRES_URL": "", "EVENTLOG_TEST_REDIS_URL": ""}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of its own, whose locks are not those of the run it is part of."""
    shutil.copytree(ROOT / "tests" / "services", tmp_path / "tests" / "services", ignore=shutil.ignore_patterns("test_*", "__pycache__"))
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def command(*arguments: str) -> list[str]:
    return ["-m", "pytest", "-q", *PLUGINS, *arguments, "tests"]


def run(suite: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    done = python(*command(*arguments), cwd=suite, **{**OWN, **environment})
    return done.returncode, done.stdout


def told(suite: Path) -> tuple[int, Path]:
    """Port and folder of the server that the suite's session has started."""
    words = json.loads((suite / "told").read_text())
    return words["port"], Path(words["folder"])


def there(port: int, folder: Path) -> bool:
    # Not by its process: a dead orphan keeps its number until the machine's first process takes note of it.
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0 or folder.exists()


def eventually(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Another process tells by what it leaves; there is nothing to wait for but that."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come to hold"
        time.sleep(0.05)


@pytest.mark.parametrize(
    "ending, workers, server",
    [
        (signal.SIGKILL, 0, "postgres_server"),
        (signal.SIGTERM, 0, "postgres_server"),
        (signal.SIGINT, 0, "postgres_server"),
        (signal.SIGKILL, 1, "postgres_server"),
        (signal.SIGKILL, 0, "redis_server"),
    ],
)
def test_a_session_that_is_killed_leaves_no_server_behind(suite, ending, workers, server):
    (suite / "tests" / "test_it.py").write_text(STARTS)
    with (suite / "output").open("wb") as output:
        session = subprocess.Popen(
            [sys.executable, *command("-n", str(workers))],
            cwd=suite,
            env={**os.environ, **OWN, "WAITS": "1", "SERVER": server},
            stdout=output,
            stderr=output,
        )
    try:
        eventually(lambda: (suite / "told").exists() or session.poll() is not None)
        assert there(*told(suite)), (suite / "output").read_text()
    finally:
        session.send_signal(ending)
        session.wait(timeout=30)
    eventually(lambda: not there(*told(suite)))


@pytest.mark.parametrize("server", ["postgres_server", "redis_server"])
def test_a_session_that_ends_takes_its_server_along(suite, server):
    (suite / "tests" / "test_it.py").write_text(STARTS)
    code, output = run(suite, SERVER=server)
    assert (0, True) == (code, "1 passed" in output), output
    assert not there(*told(suite))


def test_a_session_uses_the_postgres_that_it_is_given_and_leaves_it_as_it_was(suite, postgres_server):
    (suite / "tests" / "test_it.py").write_text(USES)
    given = postgres_server.url("postgres")
    code, output = run(suite, ADDRESS="postgres_url", EVENTLOG_TEST_POSTGRES_URL=given)
    assert (0, True) == (code, "1 passed" in output), output
    used = (suite / "url").read_text()
    assert urlsplit(given).netloc == urlsplit(used).netloc
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(used)


def test_a_session_uses_the_redis_that_it_is_given(suite, redis_url):
    (suite / "tests" / "test_it.py").write_text(USES)
    code, output = run(suite, ADDRESS="redis_url", EVENTLOG_TEST_REDIS_URL=redis_url)
    assert (0, True) == (code, "1 passed" in output), output
    assert redis_url == (suite / "url").read_text()


@pytest.mark.parametrize("ci, expected", [("", "1 skipped"), ("true", "1 error")])
@pytest.mark.parametrize("address", ["postgres_url", "redis_url"])
def test_where_there_is_no_server_the_test_is_skipped_and_in_ci_fails_with_the_way_out(suite, address, ci, expected):
    (suite / "tests" / "test_it.py").write_text(USES.replace("request)", f"{address})").replace('request.getfixturevalue(os.environ["ADDRESS"])', address))
    module = suite / "tests" / "services" / "postgres.py"
    module.write_text(module.read_text().replace('Path("/usr/lib/postgresql")', 'Path("nowhere")'))
    (suite / "bin").mkdir()
    code, output = run(suite, "-rs", CI=ci, PATH=str(suite / "bin"))
    assert (bool(ci), True, True) == (code != 0, expected in output, "run .ci/services as root" in output), output
