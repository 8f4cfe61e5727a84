"""What every test may count on: a plain terminal, real input, quiet for the tests that need it, and no silent skip in CI."""

from __future__ import annotations

import compileall
import fcntl
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer  # type: ignore[import-untyped]
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    from tests.services.postgres import Databases
    from tests.services.redis import Keys
    from tests.stores import Store

ROOT = Path(__file__).resolve().parent.parent
CI = os.environ.get("CI", "").lower() in ("1", "true")
#: Settings of the caller's shell that would change what the command prints, or which log it opens.
STRAY = ("EVENTLOG_URL", "EVENTLOG_APP", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "PYTHONWARNINGS", "PYTHONPATH")
#: Tests that kill processes, or keep several busy: one of them at a time, so one worker runs them all, beside the others' ordinary ones.
ONE_BY_ONE = (
    "tests/acceptance/",
    "tests/effector/approvals/test_kills.py",
    "tests/effector/bus/test_replicas.py",
    "tests/effector/gate/",
    "tests/effector/service/test_many_replicas.py",
    "tests/effector/service/test_outage.py",
    "tests/eventlog/postgres/chaos/",
)
#: They live in virtual time.
BESIDE = ("tests/acceptance/programs/",)
#: By itself, and in another way.
PYTEST_COMPILES = re.compile(r"/test_[^/]*\.py$")


def pytest_configure(config: pytest.Config) -> None:
    """Clear the stray settings before anything, child processes included, looks at them; and compile what these will import.

    Tests start some two thousand interpreters. Where ``PYTHONDONTWRITEBYTECODE`` is set each would compile every module anew,
    which takes longer than all that it is started for.
    """
    for name in STRAY:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        for folder in ("eventlog", "agents", "effector", "replay", "examples", "tests"):
            compileall.compile_dir(ROOT / folder, quiet=2, rx=PYTEST_COMPILES)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The 329 webhook deliveries beside the checkout; absent, the test skips, and fails under ``CI=true``."""
    path = ROOT.parent / "shared" / "data" / "github-webhooks.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"there is no {path.name} in ../shared/data beside the checkout")
    return path


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Databases]:
    """The PostgreSQL that tests share, started when the first one asks; absent, the test skips, and fails under ``CI=true``."""
    # Services are imported by who asks: most tests need no driver.
    from tests.services.postgres import VARIABLE, Databases, NoPostgres, PostgresServer

    if url := os.environ.get(VARIABLE):
        yield Databases(url)
        return
    try:
        server = PostgresServer()
    except NoPostgres as reason:
        pytest.skip(str(reason))
    with server:
        yield server.start()


@pytest.fixture
def postgres_url(postgres_server: Databases) -> Iterator[str]:
    """The URL of a PostgreSQL database that is empty, and dropped after the test."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def postgres_store(postgres_server: Databases) -> Iterator[Store]:
    """Logs in schemas of one database of the shared server."""
    from tests.services.logs import Schemas
    from tests.stores import Postgres

    schemas = Schemas(postgres_server)
    yield Postgres(schemas)
    schemas.close()


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each store in turn (``tests/stores.py``)."""
    return _store(request)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_store(request: pytest.FixtureRequest) -> Store:
    """Each store in turn that several processes may use at once."""
    return _store(request)


def _store(request: pytest.FixtureRequest) -> Store:
    from tests.stores import Memory, Sqlite

    made: dict[str, Callable[[], Store]] = {"memory": Memory, "sqlite": Sqlite, "postgresql": lambda: request.getfixturevalue("postgres_store")}
    return made[request.param]()


@pytest.fixture
def log_url(store: Store, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty log, on each store in turn."""
    yield from _log_of(store, tmp_path)


@pytest.fixture
def shared_url(shared_store: Store, tmp_path: Path) -> Iterator[str]:
    """The same on each store that several processes may use at once."""
    yield from _log_of(shared_store, tmp_path)


def _log_of(store: Store, folder: Path) -> Iterator[str]:
    yield store.url(folder / "log")
    store.over(folder / "log")


@pytest.fixture(scope="session", autouse=True)
def usual_store(request: pytest.FixtureRequest) -> None:
    """The store of the tests to which it makes no difference."""
    if name := os.environ.get("EVENTLOG_TEST_STORE"):
        from tests.stores import Sqlite, usual

        usual.store = request.getfixturevalue("postgres_store") if name == "postgresql" else Sqlite()


@pytest.fixture(autouse=True)
def usual_logs_are_over(usual_store: None) -> Iterator[None]:
    """Give back what the test asked for."""
    yield
    if (stores := sys.modules.get("tests.stores")) is not None:
        stores.usual.over()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Keys]:
    """The Redis that tests share, started when the first one asks; absent, the test skips, and fails under ``CI=true``."""
    from tests.services.redis import VARIABLE, NoRedis, RedisServer, shared

    try:
        if url := os.environ.get(VARIABLE):
            yield shared(url, worker=os.environ.get("PYTEST_XDIST_WORKER", ""))
            return
        server = RedisServer()
    except NoRedis as reason:
        pytest.skip(str(reason))
    with server:
        yield server.start()


@pytest.fixture
def redis_url(redis_server: Keys) -> Iterator[str]:
    """The URL of a Redis database that is empty, and emptied after the test."""
    redis_server.clear()  # those that use the server itself leave what they like
    yield redis_server.url
    redis_server.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under ``CI=true`` what is missing is a failure: a skipped test proves nothing."""
    report = yield
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI=true does not allow: {report.longrepr}"
    return report


def _one_by_one(nodeid: str) -> bool:
    return nodeid.startswith(ONE_BY_ONE) and not nodeid.startswith(BESIDE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Files stay together, and those of ``ONE_BY_ONE`` too: nobody waits for whose turn it is (docs/decisions/0002)."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "one by one" if _one_by_one(nodeid) else super()._split_scope(nodeid)

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests that look at the clock run while no other does, though all of them are one parallel run (docs/decisions/0002)."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with _turn(alone=item.get_closest_marker("alone") is not None, one_by_one=_one_by_one(item.nodeid)):
        return (yield)


@contextmanager
def _turn(*, alone: bool, one_by_one: bool) -> Iterator[None]:
    """A lock for many or for one. Who wants to be alone waits inside the gate, so nobody new slips past."""
    folder = ROOT / "build" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        if one_by_one:  # another run in this checkout has its own
            fcntl.flock(held.enter_context((folder / "one").open("w")), fcntl.LOCK_EX)
        room = held.enter_context((folder / "room").open("w"))
        with (folder / "gate").open("w") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            if alone:
                yield
                return
        yield
