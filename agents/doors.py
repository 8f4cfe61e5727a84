"""What a door checks before an input is durable, where the app is at hand: agent, type, payload, all with one set of words."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import attrs
import msgspec

from ..eventlog.events import NewEvent
from .app import App, Input
from .errors import InputRefused
from .facts import FACTS
from .sending import json_input, typed_input


def checked_json(app: App, agent: str, key: str, kind: str, text: str | bytes, input_id: str) -> tuple[str, NewEvent]:
    """(stream, staged event) of an input given as JSON, checked against the app as far as it can be without running it.

    Raises ``DefinitionError`` for an unknown agent, ``InvalidName`` for the key, ``InputRefused`` for the rest.
    """
    app.agent(agent)
    if kind and app.registry.get(kind) is None:
        own = {vars(each)["__event_type__"] for each in FACTS}
        known = ", ".join(sorted(entry.name for entry in app.registry if entry.name not in own)) or "none"
        raise InputRefused(f"this app has no event type {kind!r}; it has: {known}. For a plain value leave the type out")
    stream, event = plain_json(app, agent, key, kind, text, input_id)
    if kind:
        check_fields(app.codec.class_of(kind), msgspec.json.decode(text), kind)
    _check_fit(app, agent, event)
    return stream, event


def plain_json(app: App | None, agent: str, key: str, kind: str, text: str | bytes, input_id: str) -> tuple[str, NewEvent]:
    """The same without the app: the fit is found out when the input is handled."""
    from .app import runtime_codec

    try:
        return json_input(app.codec if app else runtime_codec(), agent, key, kind, text, input_id)
    except RecursionError as problem:
        raise InputRefused(f"the payload of input {input_id!r} is nested too deep to be read: {text!r:.80}") from problem


def check_fields(kind: Any, value: Any, path: str) -> None:
    """Refuse fields that ``kind``, an attrs class, does not have, in it and in the attrs classes it holds; raises ``InputRefused``."""
    if not isinstance(kind, type):
        for each in get_args(kind):
            if isinstance(each, type) and attrs.has(each):
                for one in value if isinstance(value, list) else value.values() if get_origin(kind) is dict and isinstance(value, dict) else (value,):
                    check_fields(each, one, path)
        return
    if not attrs.has(kind) or not isinstance(value, dict):
        return
    fields = {field.name: field.type for field in attrs.fields(attrs.resolve_types(kind))}
    for name, one in value.items():
        if name not in fields:
            raise InputRefused(f"{path} has no field {name!r}; it has: {', '.join(fields) or 'none'}")
        check_fields(fields[name], one, f"{path}.{name}")


def checked_input(app: App, given: Input) -> tuple[str, NewEvent]:
    """(stream, staged event) of what an app's ``intake`` made; raises like ``checked_json``."""
    stream, event = typed_input(app, given)
    _check_fit(app, given.agent, event)
    return stream, event


def _check_fit(app: App, agent: str, event: NewEvent) -> None:
    app.definitions[agent].payload(app.codec.decode(event.type, event.schema, event.data))
