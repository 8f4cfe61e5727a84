"""Everything that can be typed: the word, how it is used, what it does. Help, completion and docs are read from here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import click

from .answers import Answer, answer
from .changing import load, reload, unload
from .looking import difference, event, history, previous, state, view
from .moving import back, goto, next_event, open_stream, set_break, until, watch
from .names import LIVE
from .rendering import remark, usages
from .running import run, step
from .session import Session
from .through import through

Doing: TypeAlias = Callable[[Session, str], Answer]


@attrs.frozen
class Entry:
    """One word."""

    usage: str
    says: str
    do: Doing
    #: What its rest is completed with: ``streams``, ``types``, ``paths``, ``expressions``, ``files``, ``words``, ``code``.
    rest: str = ""


def _quit(session: Session, rest: str) -> Answer:
    return Answer(over=True)


def _refresh(session: Session, rest: str) -> Answer:
    """Look whether the stream has gone on."""
    before = session.walk.head
    session.fold_again()
    return answer(remark(f"{session.walk.head - before:,} more events, up to version {session.walk.head}"))


def _help(session: Session, rest: str) -> Answer:
    """What can be typed; with a word, how it is used."""
    word = rest.strip()
    if word:
        found = ENTRIES.get(word)
        if found is None:
            raise click.UsageError(f"There is no command {word!r:.60}. All of them: help")
        more = [] if word not in THROUGH else [remark(f"  its options: {word} --help")]
        return answer(*usages([(found.usage, found.says)]), *more)
    width = max(len(each.usage) for part in PARTS.values() for each in part.values())
    parts: list[object] = []
    for title, part in PARTS.items():
        parts += [remark(title), *usages([(each.usage, each.says) for each in part.values()], width=width)]
    parts.append(remark(f"Anything else is Python over {' '.join(LIVE)}" if session.python else "Anything else is Python, which is off here (--no-python)"))
    return Answer(tuple(parts))


PARTS: Final[dict[str, dict[str, Entry]]] = {
    "Moving": {
        "next": Entry("next [N|TYPE]", "one event on, N, or to the next of a type", next_event, "types"),
        "back": Entry("back [N|TYPE|until EXPR]", "the same backwards", back, "types"),
        "goto": Entry("goto N|@POS|TIME|start|now", "to a version, a position, the end of a time", goto, "words"),
        "until": Entry("until [EXPR]", "on until it holds, or a break does", until, "expressions"),
        "open": Entry("open STREAM", "another stream", open_stream, "streams"),
        "refresh": Entry("refresh", "see what was appended meanwhile", _refresh),
    },
    "Looking": {
        "st": Entry("st [PATH]", "the state here, or a part of it", state, "paths"),
        "prev": Entry("prev [PATH]", "the state before this event", previous, "paths"),
        "ev": Entry("ev [N]", "this event, whole", event),
        "log": Entry("log [N|all]", "the story around here", history, "words"),
        "diff": Entry("diff [A] [B] [PATH]", "what this event changed; or from A to here, to B", difference, "paths"),
        "why": Entry("why PATH", "the event that last changed it, and its causes", through("why"), "paths"),
        "watch": Entry("watch [PATH|off]", "show a part of the state after each move", watch, "paths"),
        "break": Entry("break [EXPR|off [N]]", "stop until where it begins to hold", set_break, "expressions"),
    },
    "Code": {
        "run": Entry("run", "run this event's turn again by the journal", run),
        "step": Entry("step [N|back]", "go through what its code did", step, "words"),
        "load": Entry("load FILE[:NAME]", "fold with code from a file from now on", load, "files"),
        "reload": Entry("reload", "the same file as it is now, and what differs", reload),
        "unload": Entry("unload", "fold with the app again", unload),
        "view": Entry("view [KEY]", "rows of a loaded projection, as of here", view),
        "fork": Entry("fork --at N …", "what-if, on a copy", through("fork")),
    },
    "Commands of eventlog": {
        "show": Entry("show", "the whole story", through("show"), "streams"),
        "state": Entry("state", "state and run, whole", through("state"), "streams"),
        "replay": Entry("replay [--all]", "run the agents' code again and compare", through("replay"), "streams"),
        "verify": Entry("verify [all]", "is it sound?", through("verify"), "streams"),
        "bisect": Entry("bisect EXPR", "the first event after which it holds", through("bisect"), "expressions"),
        "trace": Entry("trace ID", "causes across streams", through("trace")),
        "search": Entry("search TEXT", "events by what they hold", through("search")),
        "preflight": Entry("preflight …", "would new code carry on with what is suspended?", through("preflight")),
        "raw": Entry("raw [N]", "bytes, type and upcast trail", through("raw")),
        "bundle": Entry("bundle -o FILE", "this stream as one file", through("bundle")),
        "streams": Entry("streams [PREFIX]", "all streams and how they stand", through("streams"), "streams"),
        "stats": Entry("stats", "the log in figures", through("stats")),
        "tail": Entry("tail [-f]", "the end of the whole log", through("tail")),
        "intents": Entry("intents [PART]", "effects that are open", through("intents")),
        "approvals": Entry("approvals [PART]", "questions that wait for a person", through("approvals")),
        "dead-letters": Entry("dead-letters [PART]", "inputs that were given up", through("dead-letters")),
        "projections": Entry("projections [PART]", "views and how far they are", through("projections")),
    },
    "The shell": {
        "help": Entry("help [COMMAND]", "this, or about one of them", _help, "commands"),
        "quit": Entry("quit", "the end; so are exit and ^D", _quit),
        "exit": Entry("exit", "the end", _quit),
    },
}
ENTRIES: Final[dict[str, Entry]] = {word: each for part in PARTS.values() for word, each in part.items()}
THROUGH: Final = frozenset(PARTS["Commands of eventlog"]) | {"why", "fork"}
COMMANDS: Final[dict[str, Doing]] = {word: each.do for word, each in ENTRIES.items()}
