"""An app: agents, and everything found through them. Building one checks it all; nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs

from ..eventlog.codec import Codec
from ..eventlog.projections import Projection, Projections
from ..eventlog.registry import EventRegistry
from . import facts
from .aggregate import Aggregate, check_aggregate
from .budgets import Price
from .defining import Agent
from .definitions import Definitions
from .errors import DefinitionError
from .models import ModelClient
from .runtime_events import runtime_registry
from .tools import Tool, ToolSet


@attrs.frozen
class Input:
    """Something for an agent: what ``Client.send`` and ``--input`` files deliver."""

    agent: str
    key: str
    #: An instance of an event class, or a plain value.
    payload: Any
    #: The same id with the same payload is accepted once (S-2.2).
    id: str


class App:
    """Agents, with the tools and events their modules name, and the model client they ask.

    Tools and event classes are found in the globals of each agent's module, in its annotations and in its aggregate's
    appliers; what lives elsewhere is listed in ``tools`` and ``events``. ``intake`` turns one JSON object of an
    ``--input`` file into an ``Input`` (``None`` skips it). ``prices``
    (model → ``Price``) is what answers cost from now on. ``aggregates`` that agents load and that stand in none of their
    modules are named, and so is the ``mapper`` of an `eventsourcing` application whose aggregates they load, unless it is
    the library's own. ``projections`` are the views that ``eventlog projections`` keeps for this app; what their handlers
    get is decoded by its codec. Raises ``DefinitionError`` or ``RegistrationError``.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        *,
        models: ModelClient | None = None,
        tools: Iterable[Tool] = (),
        events: Iterable[type] = (),
        upcasters: Iterable[Callable[[dict[str, Any]], dict[str, Any]]] = (),
        intake: Callable[[dict[str, Any]], Input | None] | None = None,
        prices: Mapping[str, Price] | None = None,
        aggregates: Iterable[type[Aggregate]] = (),
        mapper: Any = None,
        projections: Iterable[Projection] = (),
    ) -> None:
        self.agents: dict[str, Agent] = {}
        for each in agents:
            if not isinstance(each, Agent):
                raise DefinitionError(f"App(agents=[…]): {each!r:.60} is not an agent; decorate the function with @agent('name')")
            if self.agents.setdefault(each.name, each) is not each:
                raise DefinitionError(f"two agents are named {each.name!r}")
        if not self.agents:
            raise DefinitionError("App(agents=[…]): there must be at least one agent")
        for each in self.agents.values():
            if each.schedules and f"{each.name}.cron" in self.agents:
                raise DefinitionError(f"an agent may not be named '{each.name}.cron': the schedules of {each.name!r} have their streams there")
        self.models = models
        self.tools = ToolSet(tools)
        self.intake = intake
        self.prices = dict(prices or {})
        self.mapper = mapper
        self.aggregates = _aggregates_of(self.agents.values(), aggregates)
        found = [*events, *(kind for each in self.aggregates for kind in each.__appliers__)]
        for each in self.agents.values():
            found += _events_of(each)
            for named in _module_of(each).values():
                if isinstance(named, Tool) and self.tools.get(named.name) is not named:
                    self.tools.add(named)
        self.registry = EventRegistry(*dict.fromkeys(found), upcasters=list(upcasters), base=runtime_registry())
        self.codec = Codec(self.registry)
        self.projections = Projections(projections, self.codec)

    @cached_property
    def definitions(self) -> Mapping[str, Definitions]:
        """Per agent, what its turns look up."""
        provider, model = (self.models.provider, self.models.model) if self.models else ("", "")
        names = frozenset(self.agents)
        return {name: Definitions(each, self.codec, self.tools, provider, model, self.prices, names, self.mapper) for name, each in self.agents.items()}

    def agent(self, name: str) -> Agent:
        """The agent; raises ``DefinitionError`` listing those there are."""
        found = self.agents.get(name)
        if found is None:
            raise no_agent(name, self.agents)
        return found


def no_agent(name: str, agents: Iterable[str]) -> DefinitionError:
    """What is raised for an agent that an app does not have."""
    return DefinitionError(f"This app has no agent {name!r}; it has: {', '.join(sorted(agents))}")


def runtime_codec() -> Codec:
    """A codec that knows the runtime's own events and no user's: enough to list, settle and redrive without an app."""
    return Codec(runtime_registry())


def _module_of(agent: Agent) -> dict[str, Any]:
    return getattr(agent.fn, "__globals__", {})


def _aggregates_of(agents: Iterable[Agent], named: Iterable[type[Aggregate]]) -> tuple[type[Aggregate], ...]:
    """Plain aggregates: the ones named, and those in the agents' modules that say where their streams stand."""
    found = dict.fromkeys(named)
    for each in agents:
        found.update(dict.fromkeys(v for v in _module_of(each).values() if isinstance(v, type) and issubclass(v, Aggregate) and v.__category__))
    for aggregate in found:
        check_aggregate(aggregate)
    return tuple(found)


def _events_of(agent: Agent) -> list[type]:
    named = [value for value in _module_of(agent).values() if isinstance(value, type)]
    named += [kind for kind in agent.inputs if isinstance(kind, type)]
    if agent.state is not None:
        named += agent.state.__appliers__
    return [kind for kind in named if "__event_type__" in kind.__dict__ and kind not in facts.FACTS]
