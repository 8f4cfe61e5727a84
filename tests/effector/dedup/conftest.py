"""The dedup stores that the suite runs over. Only their makers tell them apart; no test asks for a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from intentlog.effector.dedup import open_dedup
from intentlog.effector.testing import DedupMaker

SERVERS = {"memory": "", "sqlite": "", "postgres": "postgres_server", "redis": "redis_server"}


def _namespace(folder: Path) -> str:
    return f"namespace={folder.name.lower().replace('-', '_')[-40:]}"


def _at(name: str, url: Callable[[Path], str]) -> DedupMaker:
    def opened(folder: Path):
        return open_dedup(url(folder))

    return DedupMaker(name, opened, reopen=opened, url=url)


@pytest.fixture(params=SERVERS, scope="session")
def maker(request: pytest.FixtureRequest) -> DedupMaker:
    """Each store in turn; a store whose server is not on this machine skips, and fails under ``CI=true``."""
    match request.param:
        case "memory":
            return DedupMaker("memory", lambda folder: open_dedup("memory://"))
        case "sqlite":
            return _at("sqlite", lambda folder: f"sqlite:///{folder}/dedup.db")
        case "postgres":
            database = request.getfixturevalue("postgres_server").create_database()
            return _at("postgres", lambda folder: f"{database}?{_namespace(folder)}")
        case _:
            server = request.getfixturevalue("redis_server").url
            return _at("redis", lambda folder: f"{server}?{_namespace(folder)}")


@pytest.fixture(params=["postgres", "redis"])
def server_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Each server in turn, empty as far as this test sees; the URL has parameters already."""
    url = request.getfixturevalue(f"{request.param}_url")
    return f"{url}?{_namespace(tmp_path)}"
