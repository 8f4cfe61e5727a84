"""A turn that is watched while it is run again: what its code did, in order, with the line that did it.

The code runs once, to its end, answered from the journal as in every replay. Nothing is kept suspended; ``step`` walks
through what was seen.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

import attrs

from ...agents.context import ActivationContext
from ...agents.definitions import Definitions
from ...agents.models import ModelResponse
from ...eventlog.printing import one_line

T = TypeVar("T")
_ROOMS: Final = ("intentlog.agents", "intentlog.replay", "intentlog.eventlog")
_MOST_NAMES: Final = 12
_MOST_SEEN: Final = 10_000
_WIDTH: Final = 200


@attrs.define
class Seen:
    """One thing that the code did."""

    #: ``step 0``, ``read 1``, ``emit``, ``trace``, ``outcome``, ``patched``.
    place: str
    #: What it is about, in a word or two.
    what: str
    #: What it asked for, or said.
    asked: str = ""
    #: What it was given; empty when it was given nothing.
    given: str = ""
    file: str = ""
    line: int = 0
    #: The names in the code at that moment, as text.
    names: dict[str, str] = attrs.field(factory=dict)


class _Watched(ActivationContext[Any]):
    """A context that writes down what is asked of it. It answers exactly as the one it is made of."""

    noted: list[Seen]

    def _note(self, place: str, what: str, asked: str = "", given: str = "") -> Seen:
        noted = Seen(place, what, asked, given)
        frame = _agents_frame(sys._getframe(1))
        if frame is not None:
            noted.file, noted.line, noted.names = frame.f_code.co_filename, frame.f_lineno, _names(frame, self)
        if len(self.noted) < _MOST_SEEN:
            self.noted.append(noted)
        return noted

    def _step(self, kind: str, shown: str) -> int:
        noted = self._note(f"step {self.step_index}", kind, shown)
        try:
            return super()._step(kind, shown)
        except Exception as problem:
            noted.given = _failed(problem)
            raise

    async def call_model(self, prompt: Any, **options: Any) -> Any:
        place, before = f"step {self.step_index}", len(self.noted)
        try:
            answer = await super().call_model(prompt, **options)
        except Exception as problem:
            self._give(before, place, _failed(problem))
            raise
        self._give(before, place, _text(answer.text if isinstance(answer, ModelResponse) else answer))
        asked = self._last(before, place)
        if asked is not None:
            asked.asked = f"{asked.asked}  {_prompt(prompt)}".strip()
        return answer

    async def _read(self, name: str, plain: Any, *rest: Any) -> Any:
        noted = self._note(f"read {self._index}", name, one_line(plain, _WIDTH))
        return await self._awaited(noted, super()._read(name, plain, *rest))

    async def _awaited(self, noted: Seen, step: Any) -> Any:
        try:
            value = await step
        except Exception as problem:
            noted.given = _failed(problem)
            raise
        noted.given = _text(value)
        return value

    def act(self, used: Any, args: Any = None, **options: Any) -> str:
        before, place = len(self.noted), f"step {self.step_index}"
        try:
            intent_id = super().act(used, args, **options)
        except Exception as problem:
            self._give(before, place, _failed(problem))
            raise
        noted, known = self._last(before, place), self._new_intents.get(intent_id) or self._run.intents.get(intent_id)
        if noted is not None and known is not None:
            noted.asked, noted.given = f"{known.tool}  {one_line(known.args, _WIDTH)}", f"intent {intent_id}"
        return intent_id

    def emit(self, event: object) -> None:
        noted = self._note("emit", getattr(type(event), "__event_type__", type(event).__name__), _text(event))
        try:
            super().emit(event)
        except Exception as problem:
            noted.given = _failed(problem)
            raise

    def trace(self, text: str, **fields: Any) -> None:
        self._note("trace", one_line(text, _WIDTH), one_line(fields, _WIDTH) if fields else "")
        super().trace(text, **fields)

    def patched(self, name: str) -> bool:
        new = super().patched(name)
        self._note("patched", name, given="the new way" if new else "the old way")
        return new

    def next_outcome(self, waits: Any) -> Any:
        found = super().next_outcome(waits)
        if isinstance(found, str):
            self._note("outcome", found, given=self._came(found))
        elif found is not None:
            self._note("outcome", type(found).__name__, given=_failed(found))
        return found

    def _came(self, wait: str) -> str:
        intent = self._run.intents.get(wait)
        if intent is None or intent.settled is None:
            return "it has come"
        settled = intent.settled
        return f"{settled.status} {_text(settled.value) if settled.failure is None else settled.failure.message}"

    def _last(self, since: int, place: str) -> Seen | None:
        return next((each for each in self.noted[since:] if each.place == place), None)

    def _give(self, since: int, place: str, text: str) -> None:
        noted = self._last(since, place)
        if noted is not None:
            noted.given = text


def watched(definitions: Definitions) -> tuple[Definitions, Callable[[], list[list[Seen]]]]:
    """The same definitions with an agent that is watched, and what gives the things seen: a list for each time it ran."""
    runs: list[list[Seen]] = []
    fn = definitions.agent.fn

    def begun(ctx: Any, *arguments: Any) -> Any:
        runs.append([])
        ctx.__class__ = _Watched
        ctx.noted = runs[-1]
        return fn(ctx, *arguments)

    return attrs.evolve(definitions, agent=attrs.evolve(definitions.agent, fn=begun)), lambda: runs


def _agents_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame that is the agent's own; ``None`` when a step runs beside the code that made it."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith(_ROOMS) and not frame.f_code.co_filename.startswith("<"):
            return frame if _is_agents(frame) else None
        frame = frame.f_back
    return None


def _is_agents(frame: FrameType) -> bool:
    """A coroutine below the turn is agent code; what called the turn is this shell's caller."""
    outer = frame.f_back
    while outer is not None:
        if outer.f_globals.get("__name__") == "intentlog.agents.fibers":
            return True
        outer = outer.f_back
    return False


def _names(frame: FrameType, ctx: object) -> dict[str, str]:
    held = [(name, value) for name, value in frame.f_locals.items() if value is not ctx and not name.startswith("__")]
    return {name: _text(value) for name, value in held[:_MOST_NAMES]}


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxstring = self.maxlong = _WIDTH
        self.maxlevel, self.maxdict, self.maxlist, self.maxset, self.maxfrozenset = 4, 8, 8, 8, 8


_REPR: Final = _Brief()


def _text(value: object) -> str:
    """A value as code would write it; what cannot be shown is said to be so, for its own code does the showing."""
    try:
        return one_line(_REPR.repr(value), _WIDTH)
    except Exception as problem:
        return f"(cannot be shown: {type(problem).__name__})"


def _prompt(prompt: Any) -> str:
    last = prompt[-1] if isinstance(prompt, list | tuple) and prompt else prompt
    content = last.get("content", last) if isinstance(last, dict) else last
    return one_line(content, _WIDTH) if isinstance(content, str) else _text(content)


def _failed(problem: BaseException) -> str:
    return one_line(f"{type(problem).__name__}: {problem}", _WIDTH)
