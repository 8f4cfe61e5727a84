"""From a URL to a log, and the errors on the way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from intentlog.eventlog.errors import InvalidUrl, StoreSchemaError, TerminalError
from intentlog.eventlog.opening import open_log
from intentlog.eventlog.testing import StoreMaker
from intentlog.eventlog.testing.maker import Ticking, event, fresh


@pytest.mark.parametrize("url", ["", "memory", "sqlite", "events.db", "/tmp/events.db", "mysql://host/log", "MEMORY://", "://", "memory:/x"])
def test_a_url_that_no_store_understands_is_shown_with_the_ones_there_are(url):
    with pytest.raises(InvalidUrl) as refused:
        open_log(url)
    for word in (repr(url), "memory://", "sqlite://", "postgresql://", "sqlite:///eventlog.db"):
        assert word in str(refused.value)
    assert isinstance(refused.value, TerminalError)


def test_a_very_long_url_is_cut():
    with pytest.raises(InvalidUrl) as refused:
        open_log("x" * 10_000)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("url", ["memory://", "memory://name"])
def test_a_memory_log_lives_in_its_object(url):
    one, two = open_log(url), open_log(url)
    one.append("a-1", [event()], -1)
    assert (0, -1) == (one.head("a-1"), two.head("a-1"))
    assert url == one.url
    one.close()
    two.close()


@pytest.mark.parametrize("url", ["memory://a/b", "memory:///path", "memory://a?b=c", "memory://a b", "memory://a\n"])
def test_a_memory_url_is_a_label_and_nothing_more(url):
    with pytest.raises(InvalidUrl, match="memory://name"):
        open_log(url)


def test_there_is_no_memory_log_before_it_is_opened():
    with pytest.raises(StoreSchemaError, match="create=True"):
        open_log("memory://", create=False)


def test_a_log_tells_the_time_of_the_clock_it_was_given(maker: StoreMaker):
    clock = Ticking(42)
    with fresh(maker, clock) as log:
        log.append("a-1", [event()], -1)
        assert clock is log.clock
        assert [42] == [found.recorded_at for found in log.read("a-1")]


def test_a_sqlite_log_is_only_made_when_it_may_be(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/log.db"
    with pytest.raises(StoreSchemaError):
        open_log(url, create=False)
    open_log(url).close()
    open_log(url, create=False).close()


@pytest.mark.parametrize("driver", ["psycopg", "psycopg_pool"])
def test_a_driver_that_is_not_installed_is_named_with_the_way_to_install_it(driver):
    script = f"import sys; sys.modules[{driver!r}] = None; from intentlog.eventlog.opening import open_log; open_log('postgresql://db/log')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert f"needs {driver}, which is not installed here. Install it with: pip install 'intentlog[postgres]'" in done.stderr
    assert "InvalidUrl" in done.stderr
