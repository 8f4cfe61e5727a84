"""The outside world of a test: tools, real or replaced, with every call written down. It survives every crash of a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import attrs

from ..app import App
from ..reading import in_thread
from ..tools import IntentInfo, Tool, ToolSet


@attrs.frozen
class Effect:
    """A tool with a side effect was called."""

    tool: str
    args: Mapping[str, Any]
    intent: IntentInfo
    #: What it returned; ``None`` while it has not, or when it raised.
    result: Any = None
    error: BaseException | None = None
    returned: bool = False


class results:  # noqa: N801 - reads as a word in App(tools={refund: results("re_1", TimeoutError())})
    """A stand-in's results, one a call, the last one for ever; an exception is raised, a function is called."""

    def __init__(self, *values: Any) -> None:
        if not values:
            raise TypeError("results(…) needs at least one value")
        self._values = list(values)

    def next(self) -> Any:
        """The next one."""
        return self._values.pop(0) if len(self._values) > 1 else self._values[0]


class Hands:
    """The tools of an app; ``stand_ins`` (tool or its name → a value, ``results(…)``, an exception, a function) replace some."""

    def __init__(self, app: App, stand_ins: Mapping[Tool | str, Any]) -> None:
        #: Calls of tools with a side effect, in the order in which they began.
        self.effects: list[Effect] = []
        named = {key if isinstance(key, str) else key.name: value for key, value in stand_ins.items()}
        for name in named:
            app.tools.named(name)
        self.tools = ToolSet(self._recorded(each, named) if each.side_effect else each for each in app.tools)
        #: Stand-ins of read-only tools.
        self.reads: dict[str, Callable[..., Any]] = {
            name: functools.partial(_answer, value) for name, value in named.items() if not app.tools.named(name).side_effect
        }

    def ledger(self, tool: Tool | str) -> list[Any]:
        """What the tool returned, once per intent; twice when a repetition returned something else, for then it did not de-duplicate."""
        name = tool if isinstance(tool, str) else tool.name
        self.tools.named(name)
        seen: list[tuple[str, Any]] = []
        for effect in self.effects:
            entry = (effect.intent.intent_id, effect.result)
            if effect.tool == name and effect.returned and entry not in seen:
                seen.append(entry)
        return [result for _, result in seen]

    def _recorded(self, tool: Tool, stand_ins: Mapping[str, Any]) -> Tool:
        replaced = tool.name in stand_ins
        given: dict[str, Any] = {}

        async def stand_in(intent: IntentInfo, args: dict[str, Any]) -> Any:
            if tool.idempotent and intent.intent_id in given:  # as the provider would
                return given[intent.intent_id]
            value = _answer(stand_ins[tool.name], **args, **({"intent": intent} if tool.takes_intent else {}))
            given[intent.intent_id] = value = await value if isinstance(value, Awaitable) else value
            return value

        async def real(intent: IntentInfo, args: dict[str, Any]) -> Any:
            call = functools.partial(tool.fn, **args, **({"intent": intent} if tool.takes_intent else {}))
            value = call() if inspect.iscoroutinefunction(tool.fn) else await in_thread(call)
            return await value if isinstance(value, Awaitable) else value

        async def recorded(*, intent: IntentInfo, **args: Any) -> Any:
            place, effect = len(self.effects), Effect(tool.name, args, intent)
            self.effects.append(effect)
            try:
                value = await (stand_in if replaced else real)(intent, args)
            except BaseException as problem:
                self.effects[place] = attrs.evolve(effect, error=problem)
                raise
            self.effects[place] = attrs.evolve(effect, result=value, returned=True)
            return value

        async def reconcile(intent: IntentInfo, **args: Any) -> Any:
            return given.get(intent.intent_id)

        asked = reconcile if replaced and tool.reconcile is not None else tool.reconcile
        return attrs.evolve(tool, fn=recorded, takes_intent=True, reconcile=asked)


def _answer(value: Any, **args: Any) -> Any:
    if isinstance(value, results):
        value = value.next()
    if isinstance(value, BaseException):
        raise value
    return value(**args) if callable(value) and not isinstance(value, type) else value
