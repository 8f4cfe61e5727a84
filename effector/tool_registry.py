"""From ``module:attribute`` to the tools that stand there, without the runtime that stages their intents."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import attrs

from ..agents.runtime_events import runtime_registry
from ..agents.tools import DEFAULT_TIMEOUT, Tool, ToolSet
from ..eventlog.codec import Codec
from ..eventlog.loading import load_named

_MISSING = "no ToolSet, list of tools or App but of type {}. Make one: TOOLS = ToolSet([…])."


@attrs.frozen(eq=False)
class Registry:
    """What an effector carries out intents with."""

    tools: ToolSet
    codec: Codec
    #: Agents whose intents these are; empty: every agent's on the log.
    categories: tuple[str, ...]


def load_registry(spec: str, timeout: timedelta) -> Registry:
    """The tools that ``spec`` names; those that name no timeout get ``timeout``.

    Raises ``click.UsageError`` when it names nothing or something else, ``CouldNot`` when its module fails, ``DefinitionError``
    for two tools of one name.
    """
    found: Any = load_named(spec, _is_registry, _MISSING, kind="registry", example="refunds:TOOLS")
    given: Iterable[Tool] = found.tools if _is_app(found) else found
    tools = ToolSet(attrs.evolve(each, timeout=timeout) if each.timeout is DEFAULT_TIMEOUT else each for each in ToolSet(given))
    codec = found.codec if _is_app(found) else Codec(runtime_registry())
    return Registry(tools, codec, tuple(sorted(found.agents)) if _is_app(found) else ())


def _is_app(value: object) -> bool:
    """Told by what it brings: the class itself would bring the runtime."""
    return isinstance(getattr(value, "tools", None), ToolSet) and isinstance(getattr(value, "codec", None), Codec) and hasattr(value, "agents")


def _is_registry(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, Tool) for each in value)
    return isinstance(value, ToolSet) or _is_app(value)
