"""Lines that nobody takes: a full disk, a reader that died. No effect, no outcome and no end hangs on them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from intentlog.effector.logs import logger
from tests.acceptance.forking import PROGRAM
from tests.effector.service.replicas import World, eventually


class Disk:
    """A file of so many bytes, on a disk that is full behind them until it is given room."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.out, self.room = file.open("w"), 10**6
        works = os.write

        def write(number: int, raw: bytes) -> int:
            if number != self.out.fileno():
                return works(number, raw)
            if not self.room:
                raise OSError(errno.ENOSPC, "full")
            done = works(number, raw[: self.room])
            self.room -= done
            return done

        monkeypatch.setattr(os, "write", write)


def test_lines_that_cannot_be_written_are_lost_and_counted_and_every_other_one_is_whole(tmp_path, monkeypatch):
    disk = Disk(tmp_path / "log", monkeypatch)
    log = logger("info", disk.out)
    log.info("first", text="é \ud800")
    disk.room = 20
    for _ in range(3):
        log.info("lost")
    disk.room = 10**6
    log.info("second")
    log.info("third")
    disk.out.close()
    log.info("closed")
    first, torn, *rest = (tmp_path / "log").read_bytes().decode().splitlines()
    assert ("first", 20) == (json.loads(first)["event"], len(torn))
    assert [("lines lost", 3), ("second", None), ("third", None)] == [(told["event"], told.get("count")) for told in map(json.loads, rest)]


@pytest.mark.parametrize("reader", ["full", "gone"])
def test_a_replica_whose_lines_nobody_takes_carries_out_and_ends_as_ever(local: World, reader: str):
    words = ["--registry", "tools:TOOLS", "--log", local.url, "--log-level", "debug", "--poll-ms", "50"]
    reading, writing = os.pipe()
    if reader == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), writing)
    os.close(reading)
    intents = [local.stage(key) for key in "abc"]
    with subprocess.Popen([*PROGRAM, "effector", *words], cwd=local.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writing) as child:
        try:
            eventually(lambda: local.statuses(*intents) == ["OK", "OK", "OK"])
            assert sorted(intents) == sorted(local.ledger())
            child.send_signal(signal.SIGTERM)
            assert 0 == child.wait(30)
        finally:
            child.kill()
            os.close(writing)
