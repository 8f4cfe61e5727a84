"""One person looking at one log: where the cursor stands, what is watched, which code folds. No terminal here.

``do`` takes a line and gives an ``Answer``; the front ends only read lines and print answers. The log is open for
reading only, every question to it is over before the answer is given, and no command or expression can reach a model,
a tool or the effector. Python that a person types runs with that person's rights; ``python=False`` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import attrs
import click

from ...agents.app import App
from ...agents.errors import AgentError
from ...agents.streams import StreamState
from ...eventlog.console import COULD_NOT, USAGE, blamed, exit_code_of, explain
from ...eventlog.errors import LogError
from ...eventlog.events import StoredEvent
from ...eventlog.log import EventLog
from ...eventlog.names import category_of, check_stream
from ...eventlog.printing import one_line
from ..aggregates import categories
from ..expressions import Expression
from ..fold import head_of, state_as_tree
from ..paths import Path, path_text
from ..story import Line, story
from ..walking import Walk
from .answers import Answer, answer
from .lines import Code, Command, read_line
from .loading import Loaded, Loader
from .mistyped import meant, refused
from .names import LIVE, History, bind, compiled, names_in
from .projected import Projected
from .rendering import wrong
from .stand_ins import without_code
from .stepping import Turn
from .values import Value

_MOST_STREAMS: Final = 200


@attrs.frozen
class Break:
    """Where ``until`` stops: at the first event after which the expression holds and before which it did not."""

    text: str
    expression: Expression


@attrs.define(eq=False)
class Session:
    """Everything that a session is. ``commands`` is the table of what can be typed (``table.COMMANDS``)."""

    log: EventLog
    #: The log as the commands are given it (``--log``).
    url: str
    app: App | None
    #: ``module:attribute`` of the app, for the commands; empty without one.
    app_spec: str
    commands: Mapping[str, Callable[[Session, str], Answer]]
    #: Whether lines that are no commands are run as Python, and code is loaded from files.
    python: bool = True
    #: Columns of the screen.
    width: Callable[[], int] = attrs.field(default=lambda: 100)
    #: Let the shell's own faults through, with their tracebacks.
    debug: bool = False
    #: Called with the name of each stream that is opened.
    opened: Callable[[str], None] = attrs.field(default=lambda stream: None)
    stream: str = ""
    watches: dict[str, Path] = attrs.field(factory=dict)
    breaks: list[Break] = attrs.field(factory=list)
    #: Code from a file that folds instead of the app's.
    loaded: Loaded | None = None
    loader: Loader = attrs.field(factory=Loader)
    #: A turn run again, and how far ``step`` has come in it.
    turn: Turn | None = None
    namespace: dict[str, Any] = attrs.field(factory=lambda: {"__name__": "__shell__", "__builtins__": __builtins__})
    _walk: Walk | None = None
    _projected: Projected | None = None

    # ── where we are ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def walk(self) -> Walk:
        """The cursor; raises a usage error while no stream is open."""
        if self._walk is None:
            raise click.UsageError("No stream is open. List them with: streams   and open one with: open NAME")
        return self._walk

    @property
    def at(self) -> int:
        """The version of the event at the cursor; -1 while no stream is open."""
        return self._walk.version if self._walk is not None else -1

    @property
    def prompt(self) -> str:
        """``at 8  accounts-acct-42 › ``."""
        if self._walk is None:
            return "no stream › "
        place = f"  step {self.turn.place + 1}/{len(self.turn.seen)}" if self.turn is not None and self.turn.begun else ""
        return f"at {self.at}  {one_line(self.stream, 40)}{place} › "

    def folding(self, category: str) -> App:
        """The app whose code folds streams of ``category``: what was loaded, the session's own, or a stand-in without code."""
        for each in (self.loaded.app if self.loaded is not None else None, self.app):
            if each is not None and category in categories(each):
                return each
        return without_code(category)

    @property
    def known(self) -> App | None:
        """The app that names users' events in stories."""
        return self.loaded.app if self.loaded is not None and self.loaded.app is not None else self.app

    def open(self, stream: str, at: int | None = None) -> None:
        """Look at ``stream``, at its last event unless ``at`` says otherwise. Raises ``NoSuchStream``."""
        check_stream(stream)
        head = head_of(self.log, stream)
        walk = Walk(self.log, self.folding(category_of(stream)), stream)
        walk.goto(min(head if at is None else at, walk.last))
        self._walk, self.stream, self.turn, self._projected = walk, stream, None, None
        self.opened(stream)

    def fold_again(self) -> None:
        """The code has changed, or the log has grown: the same place, folded anew."""
        if self._walk is not None:
            self.open(self.stream, self.at)

    def grown(self) -> int:
        """How many events have been appended since it was folded."""
        return self.log.head(self.stream) - self.walk.head

    def streams(self, prefix: str = "") -> list[str]:
        """Names of streams, at most 200."""
        return list(islice(self.log.streams(prefix), _MOST_STREAMS))

    # ── what stands there ───────────────────────────────────────────────────────────────────────────────────────────

    def line(self, version: int) -> Line:
        """The event at ``version`` as the story has it."""
        return next(iter(self.lines(version, version)))

    def lines(self, first: int, last: int) -> list[Line]:
        """The story from version ``first`` to ``last``."""
        return list(story(self.log, self.stream, self.known, first=max(first, 0), last=last))

    def event(self, version: int) -> Any:
        """The event at ``version``, decoded as far as it can be."""
        return self.walk.event(version).fact

    def stored(self) -> StoredEvent:
        """The event at the cursor with its columns and bytes."""
        return self.walk.event().stored

    def folded_at(self, version: int) -> StreamState:
        """The fold up to ``version`` (-1: of nothing), nobody else's; the cursor stays."""
        walk, at = self.walk, self.at
        walk.goto(version)
        try:
            return walk.state
        finally:
            walk.goto(at)

    def tree_at(self, version: int) -> dict[str, Any]:
        """State and run after the event at ``version`` as a tree; the cursor stays."""
        return state_as_tree(self.folded_at(max(version, -1)))

    def view(self) -> dict[str, bytes]:
        """The rows of the loaded projection at the cursor; empty without one."""
        return self.projected().at(self.at).rows if self.loaded is not None and self.loaded.projection is not None else {}

    def rows_at(self, version: int) -> dict[str, Any]:
        """The same as of a version, their values readable."""
        return self.projected().at(version).readable() if self.loaded is not None and self.loaded.projection is not None else {}

    def projected(self) -> Projected:
        """The loaded projection over this stream."""
        assert self.loaded is not None and self.loaded.projection is not None
        if self._projected is None:
            self._projected = Projected(self.log, self.stream, self.loaded.projection, self.folding(category_of(self.stream)).codec)
        return self._projected

    def live(self) -> dict[str, Callable[[], Any]]:
        """The names that Python finds, each made when it is asked for."""
        if self._walk is None:
            return {}
        walk = self._walk
        return {
            "st": lambda: walk.state.state,
            "run": lambda: walk.state.run,
            "ev": lambda: self.event(self.at) if self.at >= 0 else None,
            "prev": lambda: self.folded_at(max(self.at - 1, -1)).state,
            "log": lambda: History(self.stream, walk.head + 1, self.event),
            "view": self.view,
            "stored": self.stored,
            "version": lambda: self.at,
            "stream": lambda: self.stream,
        }

    def watched(self) -> Iterator[tuple[str, Path]]:
        """The watched paths as they are written."""
        return ((path_text(path), path) for path in self.watches.values())

    # ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def do(self, text: str) -> Answer:
        """Do what a line says. Whatever goes wrong is an answer too."""
        line = read_line(text, self.commands)
        try:
            match line:
                case Command():
                    return self.commands[line.word](self, line.rest)
                case Code() if not self.python:
                    return Answer((wrong(refused(line.text, self.commands)),), USAGE)
                case Code():
                    return self.evaluate(line.text)
                case _:
                    return answer()
        except (LogError, AgentError, click.ClickException) as problem:
            return Answer((wrong(_short(explain(problem))),), exit_code_of(problem))
        except RecursionError:
            return Answer((wrong("That goes too deep to be looked at here."),), COULD_NOT)
        except Exception as problem:  # a fault of this shell must not end it
            if self.debug:
                raise
            return Answer((wrong(_short(explain(blamed(self.log) or problem))),), COULD_NOT)

    def evaluate(self, text: str) -> Answer:
        """Run Python over the names at the cursor; an expression's value is the answer. Errors are told in a line."""
        try:
            code, is_expression = compiled(text)
        except (SyntaxError, ValueError, OverflowError) as problem:
            said = meant(text, self.commands, {*LIVE, *self.namespace}) or f"{type(problem).__name__}: {getattr(problem, 'msg', problem)}"
            return Answer((wrong(said),), USAGE)
        bind(self.namespace, names_in(code), self.live())
        try:
            if not is_expression:
                exec(code, self.namespace)  # noqa: S102 - a person's own code in that person's terminal
                return answer()
            found = eval(code, self.namespace)  # noqa: S307 - the same
        except SystemExit:
            return Answer(over=True)
        except NameError as problem:
            said = meant(text, self.commands, ()) if problem.name == text.strip() else ""
            return Answer((wrong(said or f"NameError: {problem}"),), USAGE if said else COULD_NOT)
        except Exception as problem:  # a person's own code
            return Answer((wrong(f"{type(problem).__name__}: {problem}"),), COULD_NOT)
        self.namespace["_"] = found
        return answer() if found is None else answer(found if hasattr(found, "__rich_console__") else Value(found))


def _short(text: str) -> str:
    """An error as the shell tells it: without the hint to the terminal's own help."""
    return text.partition(" Try: eventlog")[0]
