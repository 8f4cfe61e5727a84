"""``eventlog`` commands of a page, each in a process of its own that is forked from one which has read all modules and done nothing.

A page has many commands, and reading modules is most of what a short one does; nobody tests that here.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import shlex
import signal
import sys
import tempfile
from typing import NoReturn

LOADED = (
    "intentlog.agents.cli",
    "intentlog.agents.commands",
    "intentlog.agents.worker",
    "intentlog.effector.cli",
    "intentlog.effector.commands_effector",
    "intentlog.effector.serving",
    "intentlog.eventlog.commands",
    "intentlog.eventlog.postgres",
    "intentlog.eventlog.sqlite",
    "intentlog.replay.cli",
    "intentlog.replay.cli_replay",
)
_EXPANDED = re.compile(r"[$`*?~\n]")
"""What a shell would do something about, wherever it stands; too often is no harm."""


class Ready:
    """Made before the page's examples run; its process ends with this one, whose pipe it reads."""

    def __init__(self) -> None:
        ask, self._ask = os.pipe()
        self._answer, answer = os.pipe()
        if os.fork() == 0:
            os.close(self._ask)
            os.close(self._answer)
            _serve(ask, answer)
        os.close(ask)
        os.close(answer)
        self._rest = b""

    @staticmethod
    def words_of(command: str) -> list[str] | None:
        """The words of an ``eventlog`` command that needs no shell, without the first; ``None`` for every other."""
        if _EXPANDED.search(command):
            return None
        reader = shlex.shlex(command, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        words = list(reader)
        if words[:1] != ["eventlog"] or any(set(word) <= set("();<>|&") for word in words if word):
            return None
        return words[1:]

    def run(self, words: list[str], stop_after: float | None, patience: float) -> tuple[int, str]:
        """Exit code and output; what is to be stopped is interrupted as ^C does, and what takes too long is killed."""
        with tempfile.NamedTemporaryFile(prefix="intentlog-") as output:
            asked = {"words": words, "cwd": os.getcwd(), "environment": dict(os.environ), "output": output.name}
            os.write(self._ask, json.dumps(asked).encode() + b"\n")
            pid = self._told(patience)
            assert pid is not None
            code = self._told(patience if stop_after is None else stop_after)
            if code is None:
                os.killpg(pid, signal.SIGKILL if stop_after is None else signal.SIGINT)
                code = self._told(patience)
                assert code is not None
            return code, output.read().decode("utf-8", "replace")

    def _told(self, seconds: float) -> int | None:
        while b"\n" not in self._rest:
            if not select.select([self._answer], [], [], seconds)[0]:
                return None
            more = os.read(self._answer, 1024)
            assert more, "the process that commands are forked from is gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return int(line)


def _serve(ask: int, answer: int) -> NoReturn:
    """Fork for every line that asks for a command; a child leaves by ``SystemExit``, as from a program of its own."""
    with open(ask, "rb") as lines:
        for number, line in enumerate(lines):
            asked = json.loads(line)
            if number == 1:  # a page with one command has nothing to gain
                for name in LOADED:
                    importlib.import_module(name)
            if (pid := os.fork()) == 0:
                os.close(answer)
                _become(asked)
            os.write(answer, b"%d\n" % pid)
            os.write(answer, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)


def _become(asked: dict[str, object]) -> NoReturn:
    os.setsid()
    to, nothing = os.open(str(asked["output"]), os.O_WRONLY | os.O_APPEND), os.open(os.devnull, os.O_RDONLY)
    for end, number in ((nothing, 0), (to, 1), (to, 2)):
        os.dup2(end, number)
    os.chdir(str(asked["cwd"]))
    os.environ.clear()
    os.environ.update(asked["environment"])  # type: ignore[call-overload]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["eventlog", *asked["words"]]  # type: ignore[misc]
    from intentlog.eventlog.cli import main

    main()
    raise SystemExit(0)
