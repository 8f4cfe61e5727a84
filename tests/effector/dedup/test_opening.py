"""From a URL to a store: errors that name the way out, no secrets in them, no client library before it is asked for."""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from intentlog.effector.dedup import ClientMissing, DedupSchemaError, InvalidDedupUrl, StoreUnavailable, open_dedup
from intentlog.effector.testing import DedupMaker

SECRET = "hunter2"


@pytest.mark.parametrize(
    "url", ["", "redis", "kafka://x", f"mysql://ann:{SECRET}@db/x", "memory://a b", "memory://a?b=c", "sqlite://x.db", "sqlite:///:memory:"]
)
def test_a_url_that_no_store_understands_is_refused(url: str) -> None:
    with pytest.raises(InvalidDedupUrl) as refusal:
        open_dedup(url)
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}/word@db/x",
        f"postgresql://ann:p:{SECRET}/word@db/x",
        f"postgresql://ann:{SECRET}@db/x?no_such_parameter=1",
        f"redis://ann:{SECRET}/word@cache/0",
        f"redis://:{SECRET}",
        f"redis://:{SECRET}@cache/0?socket_timeout=soon",
        f"redis://:{SECRET}@cache/0?decode_responses=yes",
    ],
)
def test_a_url_that_the_client_library_cannot_read_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(InvalidDedupUrl) as refusal:
        open_dedup(url)
    assert SECRET not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("url", [f"postgresql://ann:{SECRET}@127.0.0.1:1/x", f"redis://ann:{SECRET}@127.0.0.1:1/0"])
def test_a_server_that_is_not_there_is_unavailable_at_once(url: str) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        open_dedup(url)
    assert "ann:***@127.0.0.1:1" in str(refusal.value)
    assert SECRET not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize(("url", "library", "extra"), [("postgresql://db/x", "psycopg", "postgres"), ("redis://cache/0", "redis", "redis")])
def test_a_missing_client_library_is_named_with_the_extra_that_brings_it(url: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == library or name.startswith("intentlog.effector.dedup.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_Without(library), *sys.meta_path])
    from intentlog.effector.dedup.errors import ClientMissing as Missing
    from intentlog.effector.dedup.opening import open_dedup as opening

    with pytest.raises(Missing) as refusal:
        opening(url)
    assert f"pip install 'intentlog[{extra}]'" in str(refusal.value)
    assert ClientMissing.__name__ == Missing.__name__


class _Without:
    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".", maxsplit=1)[0] == self._library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=self._library)


def test_importing_the_effector_or_the_stores_brings_no_client_library(tmp_path: Path) -> None:
    program = """
import sys
import intentlog.effector, intentlog.effector.testing
from intentlog.effector.dedup import open_dedup
from intentlog.effector import Effector
open_dedup("memory://").close()
open_dedup("sqlite:///dedup.db").close()
print(sorted({name.split(".")[0] for name in sys.modules} & {"psycopg", "psycopg_pool", "redis"}))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ("[]\n", "") == (done.stdout, done.stderr)


def test_what_is_not_there_is_made_only_when_it_may_be(server_url: str, tmp_path: Path) -> None:
    for url in (server_url, f"sqlite:///{tmp_path}/dedup.db"):
        with pytest.raises(DedupSchemaError) as refusal:
            open_dedup(url, create=False)
        assert "create=True" in str(refusal.value)
        open_dedup(url).close()
        open_dedup(url, create=False).close()


def test_a_store_says_whether_others_can_be_on_it(maker: DedupMaker, tmp_path: Path) -> None:
    store = maker.make(tmp_path)
    assert (maker.reopen is not None) == store.shared
    store.close()


def test_memory_says_what_it_forgets() -> None:
    assert ["forgets every claim" in caveat for caveat in open_dedup("memory://").caveats] == [True]
