"""Show 6: the triage log replays as *same* with no provider in reach; one byte of the prompt changed is found and named."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.harness import ROOT, Ended, eventlog, opened, run
from tests.acceptance.harness_triage import triage, world

KEYS = 29
#: Keys for which the model was asked.
ASKING = ("triage-Codertocat/Hello-World#1", "triage-Codertocat/Hello-World#2")


@pytest.fixture(scope="module")
def url(tmp_path_factory, shared_data, shared_store):
    """The log of a finished run; its servers are gone."""
    folder = tmp_path_factory.mktemp("replay")
    made = shared_store.url(folder / "log")
    with world(folder) as around:
        ended = triage(made, shared_data, around)
    assert 0 == ended.code, ended.output
    return made


@contextmanager
def trap() -> Iterator[socket.socket]:
    """Where the providers would be: an open port at which nobody answers, and which remembers who came."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


def replay(url: str, app: str, cwd: Path, port: int) -> Ended:
    there = f"http://127.0.0.1:{port}"
    env = {"TRIAGE_MODEL_URL": f"{there}/v1", "TRIAGE_GITHUB_URL": there, "COLUMNS": "200"}
    return run(eventlog("replay", "--all", "--app", app, "--log", url), env, cwd)


def changed_copy(folder: Path) -> str:
    """The example under another name, with one byte of its prompt changed; gives the name of its app."""
    copy = folder / "changed_triage"
    shutil.copytree(ROOT / "examples" / "triage", copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = copy / "agent.py"
    text = code.read_text("utf-8")
    assert 1 == text.count("You sort issues")
    code.write_text(text.replace("You sort issues", "You sort Issues"), "utf-8")
    return "changed_triage:app"


def test_every_stream_is_the_same_and_nobody_is_asked(url):
    with trap() as listening:
        ended = replay(url, "examples.triage:app", ROOT, listening.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert 0 == ended.code, ended.output
    assert f"{KEYS} same" in ended.output
    assert "diverged" not in ended.output.replace("0 diverged", "")


def test_with_no_provider_at_all_it_still_works(url):
    with trap() as listening:
        port = listening.getsockname()[1]
    ended = replay(url, "examples.triage:app", ROOT, port)
    assert 0 == ended.code, ended.output


def test_a_replay_writes_nothing(url):
    with opened(url) as log:
        before = log.last_position()
    with trap() as listening:
        replay(url, "examples.triage:app", ROOT, listening.getsockname()[1])
    with opened(url) as log:
        assert before == log.last_position()


def test_one_byte_of_the_prompt_changed_is_a_difference_with_a_name(url, tmp_path):
    with trap() as listening:
        ended = replay(url, changed_copy(tmp_path), tmp_path, listening.getsockname()[1])
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert 1 == ended.code, ended.output
    assert "messages[0].content" in ended.output
    assert [True, True] == [stream in ended.output for stream in ASKING]
    assert "You sort Issues" in ended.output
