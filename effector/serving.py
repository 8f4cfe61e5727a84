"""One ``eventlog run``: opens the log, serves, watches signals, shows progress, sums up. Everything a flag can say ends here."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

import attrs

from ..agents.loading import load_app
from ..agents.signing import OFF, KeyRing, verifier
from ..agents.tuning import tune_for_serving
from ..agents.vouching import outcome_verifier
from ..agents.worker import WorkerSettings
from ..eventlog.clock import MILLISECOND
from ..eventlog.console import COULD_NOT, INTERRUPTED, OK, masked, writing
from ..eventlog.errors import LogUnavailable
from ..eventlog.log import EventLog
from ..eventlog.owners import this_process
from ..eventlog.printing import note, one_line
from ..eventlog.watching import watching
from .inputs import InputFile
from .measures import EffectorSettings
from .outage import Outage
from .process import Process
from .running import run
from .showing import Shown, shown
from .summary import Summary, print_summary

T = TypeVar("T")

_MOST_TOLD: Final = 50
"""Refused lines told one by one; the rest is counted."""
_SAME_AGAIN: Final = 10.0
"""Seconds until the same trouble is told again."""
_RESTARTS_WITHIN: Final = 20.0
"""Seconds that the log may be away before the first and after the last thing a run does; in between ``outage`` says how long."""
_LOOK_AGAIN: Final = 0.2


def _write_now(text: str, *, last: bool = False) -> None:
    """A line on stderr out of a signal handler: past all buffers, which may be in use right now."""
    front, back = ("\r\x1b[2K", "\x1b[?25h" if last else "") if sys.stderr.isatty() else ("", "")  # over the bar; the cursor that it hid
    try:
        os.write(2, f"{front}{text}{back}\n".encode())
    except OSError:  # nobody reads it; stopping is what matters
        pass


@attrs.define(eq=False)
class Serving:
    """The options of one run, and what it counted."""

    app: str
    url: str
    until_idle: bool
    concurrency: int
    lease_ms: int
    poll_ms: int
    as_json: bool
    crash: Any
    path: str | None
    with_effector: bool
    create: bool
    keys: KeyRing | None = None
    verify: str = OFF
    verify_outcomes: str = OFF
    _boundaries: Counter[str] = attrs.field(factory=Counter, init=False)
    _signal: int = attrs.field(default=0, init=False)
    _troubles: dict[str, float] = attrs.field(factory=dict, init=False)
    _told: int = attrs.field(default=0, init=False)
    _view: Shown | None = attrs.field(default=None, init=False)
    _loop: asyncio.AbstractEventLoop | None = attrs.field(default=None, init=False)

    def run(self) -> int:
        """Serve, and give the exit code."""
        app = load_app(self.app)
        tune_for_serving()
        with ExitStack() as held:
            log = held.enter_context(writing(self.url, create=self.create))
            file = InputFile(self.path, app, self._refused) if self.path is not None else None
            if file is not None:
                held.callback(file.close)
            process = self._process(app, log)
            began, first = time.monotonic(), self._seen(log.last_position)
            with shown(file, until_idle=self.until_idle) as self._view, self._watching(process), watching(log, self._held_back):
                run(self._serve(process, file))
            elapsed, asked = time.monotonic() - began, self._boundaries["model.answered"]
            summary = self._seen(lambda: Summary.of(log, first, process.owner, process.progress, file, asked, elapsed))
        for each in process.progress.refused[:_MOST_TOLD]:
            note(f"{self.path}: {one_line(each)}")
        if process.left_alone:
            count = len(process.left_alone)
            note(f"{count} {'stream stands' if count == 1 else 'streams stand'} still, with intents that are left alone: eventlog dead-letters list")
        print_summary(summary, as_json=self.as_json, worker_only=not self.with_effector)
        return self._exit_code(summary, file, finished=not process.left_alone)

    def _seen(self, look: Callable[[], T]) -> T:
        """What ``look()`` gives. All the work is done, or none has begun: a server that is just starting again is waited for."""
        until = time.monotonic() + _RESTARTS_WITHIN
        while True:
            try:
                return look()
            except LogUnavailable:
                if self._signal or time.monotonic() >= until:
                    raise
                time.sleep(_LOOK_AGAIN)

    def _process(self, app: Any, log: EventLog) -> Process:
        lease, poll = self.lease_ms * MILLISECOND, self.poll_ms / 1000
        return Process(
            app,
            log,
            this_process(),
            WorkerSettings(concurrency=self.concurrency, lease=lease, poll=poll),
            EffectorSettings(concurrency=self.concurrency, lease=lease, poll=poll),
            boundary=self._boundary,
            on_error=self._trouble,
            with_effector=self.with_effector,
            keys=self.keys,
            verifier=verifier(self.verify, self.keys),
            outcomes=outcome_verifier(self.verify_outcomes, self.keys, app.codec),
            outage=Outage(apart=30.0 + 2 * self.lease_ms / 1000),
        )

    async def _serve(self, process: Process, file: InputFile | None) -> None:
        self._loop = asyncio.get_running_loop()
        if self._signal:  # it came before there was a loop
            self._loop.call_soon(process.stop)
        assert self._view is not None
        if not self.until_idle:
            self._say(f"serving {self.app} on {masked(self.url)}; ^C stops")
        try:
            await process.run(file.helping if file is not None else None, until_idle=self.until_idle, every=self._view.update)
        finally:
            close = getattr(process.app.models, "aclose", None)
            if close is not None:
                await close()

    @contextmanager
    def _watching(self, process: Process) -> Iterator[None]:
        """Heed ^C and SIGTERM while this lasts.

        Not with the loop's own handlers: agent code that blocks the loop would keep them from ever running, and such a
        process could not be stopped at all.
        """
        before = {number: signal.signal(number, lambda number, _: self._heed(process, number)) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heed(self, process: Process, number: int) -> None:
        if self._signal:
            _write_now("stopped at once; the next run goes on from the log", last=True)
            os._exit(128 + number)
        self._signal = number
        _write_now("stopping when what is in flight has ended; once more stops at once")
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(process.stop)

    def _boundary(self, name: str, stream: str) -> None:
        self._boundaries[name] += 1
        if self.crash is not None:
            self.crash(name, stream)

    def _say(self, text: str) -> None:
        if self._view is not None:
            self._view.say(text)
        else:
            note(text)

    def _refused(self, text: str) -> None:
        self._told += 1
        if self._told <= _MOST_TOLD:
            self._say(f"refused {one_line(text, 2_000)}")
        elif self._told == _MOST_TOLD + 1:
            self._say("refused more lines; they are counted from here on")

    def _trouble(self, doing: str, problem: BaseException) -> None:
        text, now = f"{doing}: {type(problem).__name__}: {problem}", time.monotonic()
        if now - self._troubles.get(text, -_SAME_AGAIN) >= _SAME_AGAIN:
            self._troubles[text] = now
            self._say(masked(one_line(text, 2_000)))

    def _held_back(self, text: str) -> None:
        """Said by the store itself, in a thread of its own."""
        self._say(masked(one_line(text, 2_000)))

    def _exit_code(self, summary: Summary, file: InputFile | None, *, finished: bool) -> int:
        if self._signal == signal.SIGINT:
            return INTERRUPTED
        unfinished = self._signal and (self.until_idle or (file is not None and not file.ended))
        return COULD_NOT if summary.refused or unfinished or (self.until_idle and not finished) else OK
