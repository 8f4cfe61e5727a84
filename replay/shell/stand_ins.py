"""Apps that fold and never run: for a log without its code, and for an aggregate loaded from a file.

Each has an app's own codec and one agent whose code does nothing, so that the same fold serves as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from ...agents import facts
from ...agents.aggregate import Aggregate
from ...agents.app import App
from ...agents.defining import Agent, agent
from ...eventlog.codec import Codec, Reader
from ...eventlog.errors import Undecodable
from ...eventlog.registry import event_name


async def _nothing(ctx: Any) -> None:
    """Stands where an agent's code stands; nobody runs it."""


class _Lenient(Codec):
    """Reads events of types that it does not know as plain values, and what is none of ours as bytes."""

    def decoder(self, type: str, schema: int) -> Reader:
        return super().decoder(type, schema) if self.registry.get(type) is not None else self._plainly

    def class_of(self, type: str) -> type:
        return super().class_of(type) if self.registry.get(type) is not None else dict

    def _plainly(self, data: bytes) -> Any:
        try:
            return self.tree(data)
        except Undecodable:
            return data


def without_code(category: str) -> App:
    """An app for a log whose code is not here: the runtime's part of every state is folded, the aggregate is ``None``."""
    app = App(agents=[agent(category)(_nothing)])
    app.codec = _Lenient(app.registry)
    return app


def with_aggregate(category: str, state: type[Aggregate], events: Iterable[type], upcasters: Iterable[Callable[..., Any]], app: App | None) -> App:
    """An app that folds streams of ``category`` with ``state``.

    Event classes and upcasters given here come before those of ``app``, which has the rest. They get a registry of
    their own, so that a reloaded class is in nobody's way. Raises ``DefinitionError`` or ``RegistrationError``.
    """
    known = app.agents.get(category) if app is not None else None
    acting = agent(category, state=state)(_nothing) if known is None else _folding_only(known, state)
    classes = {event_name(each)[0]: each for each in (*events, *state.__appliers__)}
    steps = {_mark(each): each for each in upcasters}
    runtime = frozenset(facts.FACTS)
    for entry in app.registry if app is not None else ():
        if entry.cls not in runtime:
            classes.setdefault(entry.name, entry.cls)
        for each in entry.steps:
            steps.setdefault((each.type, each.from_version), each.function)
    return App(agents=[acting], events=classes.values(), upcasters=[each for (name, _), each in steps.items() if name in classes])


def _folding_only(known: Agent, state: type[Aggregate]) -> Agent:
    return attrs.evolve(known, fn=_nothing, state=state, inputs=(), takes_input=False, schedules=())


def _mark(function: Callable[..., Any]) -> tuple[str, int]:
    from ...eventlog.upcasting import step_of

    step = step_of(function)
    return step.type, step.from_version
