"""A state machine as text, as Mermaid and as JSON, with how many keys stand in each state when a log is given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs

from ..eventlog.errors import LogError
from ..eventlog.log import EventLog
from .aggregate import Aggregate
from .app import App
from .errors import AgentError, DefinitionError
from .machine import StateMachine, label
from .reading_streams import Loaded, PlainFolder


@attrs.frozen
class Drawn:
    """What ``eventlog machine`` looks at."""

    #: The agent, or the category of a plain aggregate.
    name: str
    aggregate: type[Aggregate]
    machine: StateMachine
    #: The streams are an agent's, runtime facts among them.
    runs: bool


def found_in(app: App, name: str) -> Drawn:
    """The state machine of an agent's aggregate, or of a plain aggregate by its category or class name; raises ``DefinitionError``."""
    plain = {each.__category__ or each.__name__: each for each in app.aggregates} | {each.__name__: each for each in app.aggregates}
    aggregate = app.agents[name].state if name in app.agents else plain.get(name)
    if aggregate is None:
        if name in app.agents:
            raise DefinitionError(f"agent {name} has no state, and so no state machine: @agent({name!r}, state=…)")
        raise DefinitionError(f"this app has no agent or aggregate {name!r}; it has: {', '.join(sorted({*app.agents, *plain}))}")
    if aggregate.__machine__ is None:
        raise DefinitionError(f"{aggregate.__name__} declares no state machine: machine = StateMachine(…) in its body")
    return Drawn(name if name in app.agents else aggregate.__category__, aggregate, aggregate.__machine__, name in app.agents)


def counts(log: EventLog, app: App, drawn: Drawn) -> Counter[str]:
    """Keys by state, each folded from its events; under ``?`` those whose stream cannot be read. Memory does not grow with the log."""
    folder = PlainFolder(app.codec, drawn.aggregate, runs=drawn.runs)
    found: Counter[str] = Counter()
    for stream in log.streams(f"{drawn.name}-"):
        at = Loaded(drawn.aggregate(), -1) if drawn.runs else folder.restore(log.snapshots.load([stream]).get(stream), None)
        try:
            for rows in log.rows(stream, after=at.version):
                at = folder.fold(stream, at, rows)
        except (LogError, AgentError):
            found["?"] += 1
        else:
            found[label(drawn.machine.of(at.state))] += 1
    return found


def as_object(drawn: Drawn, keys: Counter[str] | None) -> dict[str, Any]:
    """The table for ``--json``."""
    machine = drawn.machine
    shown: dict[str, Any] = {
        "name": drawn.name,
        "aggregate": drawn.aggregate.__name__,
        "field": machine.field,
        "initial": label(machine.initial),
        "states": [label(state) for state in machine.states],
        "final": list(machine.final()),
        "arrows": [{"from": arrow.source, "event": arrow.event, "to": arrow.target, "guard": arrow.guard or None} for arrow in machine.arrows()],
        "commands": {label(state): [command.__name__ for command in commands] for state, commands in machine.commands.items()},
    }
    if keys is not None:
        shown["keys"] = {state: keys.get(state, 0) for state in shown["states"]} | {
            state: count for state, count in keys.items() if state not in shown["states"]
        }
    return shown


def text_lines(drawn: Drawn, keys: Counter[str] | None) -> Iterator[str]:
    """State by state: what it allows and where that leads."""
    machine = drawn.machine
    for state in machine.states:
        name = label(state)
        marks = [word for word, holds in (("initial", state == machine.initial), ("final", name in machine.final())) if holds]
        count = f"  {keys.get(name, 0)}" if keys is not None else ""
        noted = f"  ({', '.join(marks)})" if marks else ""
        yield f"{name}{count}{noted}"
        arrows = [arrow for arrow in machine.arrows() if arrow.source == name]
        width = max((len(arrow.event) for arrow in arrows), default=0)
        for arrow in arrows:
            guard = f"  if {arrow.guard}" if arrow.guard else ""
            yield f"  {arrow.event:<{width}} → {arrow.target}{guard}"
        commands = [command.__name__ for command in machine.commands.get(state, ())]
        if commands:
            yield f"  commands: {', '.join(commands)}"
    for odd, keys_in in (keys or {}).items():
        if odd not in {label(each) for each in machine.states}:
            yield f"{odd}  {keys_in}  ({'cannot be read' if odd == '?' else 'not declared'})"


def mermaid_lines(drawn: Drawn, keys: Counter[str] | None) -> Iterator[str]:
    """A Mermaid state diagram; names that Mermaid does not take get an alias."""
    machine = drawn.machine
    aliases = {label(state): _alias(label(state), place) for place, state in enumerate(machine.states)}
    yield "stateDiagram-v2"
    for state, alias in aliases.items():
        count = f" ({keys.get(state, 0)})" if keys is not None else ""
        if alias != state or count:
            shown = state.replace('"', "'")
            yield f'    state "{shown}{count}" as {alias}'
    yield f"    [*] --> {aliases[label(machine.initial)]}"
    for arrow in machine.arrows():
        guard = f" [{arrow.guard}]" if arrow.guard else ""
        yield f"    {aliases[arrow.source]} --> {aliases[arrow.target]} : {arrow.event}{guard}"
    for state in machine.final():
        yield f"    {aliases[state]} --> [*]"


def _alias(state: str, place: int) -> str:
    return state if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", state) else f"s{place}"
