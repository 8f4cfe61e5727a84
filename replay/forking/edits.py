"""What is to be different in a fork: fields of recorded events, events left out, events put in. Pure.

``--edit 3 cents=100`` sets a field of the event at version 3; a dot goes down (``response.text=no``), and an input's own
fields are reached through ``payload`` or without it; ``payload=4`` sets an input whole. ``--drop 5`` leaves one out.
``--insert FILE`` reads one JSON object, or a list of them:
``{"type": …, "fields": {…}, "before": VERSION}``; a type of the user's becomes an input (with ``"id"``). Without ``before`` it goes to the end.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ...agents import facts
from ...agents.errors import AgentError
from ...agents.intents import fact_id, input_event_id
from ...agents.sending import json_input
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError
from ...eventlog.events import StoredEvent
from ...eventlog.names import split_stream
from ...eventlog.registry import event_name
from ..errors import ForkRefused
from .pieces import JOURNAL, Piece, is_told

_FACTS: Final = frozenset(event_name(fact)[0] for fact in facts.FACTS)
_ASKED: Final = frozenset({"request", "args", "digest", "seq", "step", "index", "tool", "now", "seen"})
"""Fields of an answer that say what was asked; another question is another code."""


@attrs.frozen
class Edit:
    """One field of one event, set to a value."""

    version: int
    path: tuple[str, ...]
    value: Any
    #: How the value was written; empty when it was not read from a text.
    said: str = attrs.field(default="", eq=False)

    def __str__(self) -> str:
        return f"{self.version} {'.'.join(self.path)}={json.dumps(self.value, ensure_ascii=False)}"


@attrs.frozen
class Insert:
    """One event more. ``before``: a version of the source, or ``None`` for the end."""

    type: str
    fields: dict[str, Any]
    before: int | None = None
    id: str = ""

    def __str__(self) -> str:
        return f"{self.type} {json.dumps(self.fields, ensure_ascii=False)} {'at the end' if self.before is None else f'before {self.before}'}"


@attrs.frozen
class Edits:
    """All of them."""

    edits: tuple[Edit, ...] = ()
    drops: tuple[int, ...] = ()
    inserts: tuple[Insert, ...] = ()

    def __str__(self) -> str:
        return "; ".join(self.as_texts())

    def as_texts(self) -> tuple[str, ...]:
        """For the record of the fork."""
        return (*(f"edit {each}" for each in self.edits), *(f"drop {each}" for each in self.drops), *(f"insert {each}" for each in self.inserts))


def parse_edit(version: int, text: str) -> Edit:
    """``field=value``; a value that is no JSON is text. Raises ``ForkRefused``.

    >>> parse_edit(3, "response.text=no").value, parse_edit(3, "cents=100").value
    ('no', 100)
    """
    path, mark, value = text.partition("=")
    keys = tuple(path.split("."))
    if not mark or not all(keys):
        raise ForkRefused(f"{text!r:.120} is no edit: write FIELD=VALUE, for example cents=100 or response.text=no")
    try:
        return Edit(version, keys, json.loads(value), value)
    except ValueError:
        return Edit(version, keys, value, value)


def parse_inserts(text: str) -> tuple[Insert, ...]:
    """One JSON object or a list of them. Raises ``ForkRefused``."""
    form = 'an event to insert looks like {"type": "intent.settled", "fields": {…}, "before": 7}'
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise ForkRefused(f"What is to be inserted is no JSON ({problem}); {form}") from problem
    inserts = []
    for each in found if isinstance(found, list) else [found]:
        odd = not isinstance(each, dict) or set(each) - {"type", "fields", "before", "id"}
        if odd or not isinstance(each.get("type"), str) or not isinstance(each.get("fields", {}), dict):
            raise ForkRefused(f"{json.dumps(each)[:120]} cannot be inserted: {form}")
        if not isinstance(each.get("before"), int | None) or not isinstance(each.get("id", ""), str):
            raise ForkRefused(f"{json.dumps(each)[:120]} cannot be inserted: 'before' is a version, 'id' a text")
        inserts.append(Insert(each["type"], each.get("fields", {}), each.get("before"), each.get("id", "")))
    return tuple(inserts)


def edited(codec: Codec, events: Sequence[StoredEvent], upto: int, edits: Edits) -> tuple[list[Piece], int]:
    """The events up to ``upto`` with ``edits`` made, and the version from which on they are not the source's.

    Raises ``ForkRefused`` for a version that is not there or was decided by the code, and for a value that does not fit.
    """
    places = [each.version for each in edits.edits] + list(edits.drops)
    for version in places:
        _check_place(codec, events, upto, version)
    for insert in edits.inserts:
        if insert.before is not None and not 0 < insert.before <= upto + 1:
            raise ForkRefused(f"{insert}: there is no version {insert.before} to go before; the fork has 0 to {upto}. Leave 'before' out for the end.")
    pieces: list[Piece] = []
    stream = events[0].stream
    for version in range(upto + 1):
        pieces += _inserted(codec, stream, pieces, (each for each in edits.inserts if each.before == version))
        if version in edits.drops:
            continue
        piece = Piece.of(events[version])
        for edit in edits.edits:
            if edit.version == version:
                piece = _with(codec, piece, edit)
        pieces.append(piece)
    pieces += _inserted(codec, stream, pieces, (each for each in edits.inserts if each.before in (None, upto + 1)))
    touched = [*places, *(upto + 1 if each.before is None else each.before for each in edits.inserts)]
    return pieces, min(touched, default=upto + 1)


def _check_place(codec: Codec, events: Sequence[StoredEvent], upto: int, version: int) -> None:
    if not 0 <= version <= upto:
        raise ForkRefused(f"There is no version {version} to change: the fork has versions 0 to {upto}")
    event = events[version]
    if event.type not in JOURNAL and not is_told(codec, event.type, event.schema, event.data):
        raise ForkRefused(
            f"Version {version} ({event.type}) was decided by the agent's code, and is decided anew in a fork. Change what it was told instead: "
            "an input, an answer, an outcome. To try other code: eventlog fork STREAM --at N with that code as --app."
        )


def _with(codec: Codec, piece: Piece, edit: Edit) -> Piece:
    if piece.type in JOURNAL and edit.path[0] in _ASKED:
        raise ForkRefused(f"{edit}: {edit.path[0]} is what the code asked for, not what it was told. Edit the answer: response.text=…, or value=…")
    try:
        tree = codec.tree(piece.data)
        if _is_in_payload(piece, tree, edit):
            _set_in_payload(codec, tree, edit)
        else:
            _set(tree, edit.path, edit)
        event = codec.decode(piece.type, piece.schema, codec.encode_value(tree, dict[str, Any]))
        kind, schema, blob = codec.encode(event)
    except LogError as problem:
        if isinstance(problem, ForkRefused):
            raise
        raise ForkRefused(f"{edit} does not fit {piece.type}: {problem}{_quoting(codec, piece, edit)}") from problem
    return attrs.evolve(piece, type=kind, schema=schema, data=blob)


def _is_in_payload(piece: Piece, tree: dict[str, Any], edit: Edit) -> bool:
    """Whether the edit is one of an input's own value, or of a part of it."""
    return piece.type == "input.received" and (edit.path[0] == "payload" or edit.path[0] not in tree)


def _quoting(codec: Codec, piece: Piece, edit: Edit) -> str:
    """The way out for a text that was taken for JSON; empty when no text stands there, or one was given."""
    try:
        if isinstance(edit.value, str) or not isinstance(_standing(codec, piece, edit), str):
            return ""
    except LogError:
        return ""  # the event cannot be read at all, and that is what is told
    text = json.dumps(edit.said or json.dumps(edit.value, ensure_ascii=False), ensure_ascii=False)
    again = shlex.quote(f"{'.'.join(edit.path)}={text}")
    return f". A text stands there, and what reads as JSON is taken for JSON. To give it as text, quote it: --edit {edit.version} {again}"


def _standing(codec: Codec, piece: Piece, edit: Edit) -> Any:
    """What stands in the event where the edit goes."""
    tree, path = codec.tree(piece.data), edit.path
    if _is_in_payload(piece, tree, edit):
        path = path[1:] if path[0] == "payload" else path
        tree = json.loads(tree["payload"]) if tree["format"] == "json" else codec.tree(tree["payload"])
    for key in path:
        tree = _at(tree, key, edit)
    return tree


def _set_in_payload(codec: Codec, tree: dict[str, Any], edit: Edit) -> None:
    path = edit.path[1:] if edit.path[0] == "payload" else edit.path
    inner = json.loads(tree["payload"]) if tree["format"] == "json" else codec.tree(tree["payload"])
    if path and not isinstance(inner, dict | list):
        raise ForkRefused(f"{edit}: the input is {inner!r:.60} and has no fields. Set it whole: --edit {edit.version} payload=VALUE")
    if path:
        _set(inner, path, edit)
    else:
        inner = edit.value
    if tree["format"] == "json":
        tree["payload"] = json.dumps(inner, separators=(",", ":"), sort_keys=True).encode()
        return
    blob = codec.encode_value(inner, Any)
    if tree["type"]:
        _, tree["schema"], blob = codec.encode(codec.decode(tree["type"], tree["schema"], blob))
    tree["payload"] = blob


def _set(tree: Any, path: tuple[str, ...], edit: Edit) -> None:
    *before, last = path
    for key in before:
        tree = _at(tree, key, edit)
    _at(tree, last, edit)
    tree[int(last) if isinstance(tree, list) else last] = edit.value


def _at(tree: Any, key: str, edit: Edit) -> Any:
    if isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
        return tree[int(key)]
    if isinstance(tree, dict) and key in tree:
        return tree[key]
    there = ", ".join(map(str, tree)) if isinstance(tree, dict) else f"0 to {len(tree) - 1}" if isinstance(tree, list) else f"no fields, but {tree!r:.60}"
    raise ForkRefused(f"{edit}: there is no {key!r}; there is {there:.300}")


def _inserted(codec: Codec, stream: str, before: Sequence[Piece], inserts: Iterable[Insert]) -> list[Piece]:
    moment = before[-1].recorded_at if before else 0
    return [_made(codec, stream, insert, moment) for insert in inserts]


def _made(codec: Codec, stream: str, insert: Insert, moment: int) -> Piece:
    try:
        if insert.type not in _FACTS:
            codec.class_of(insert.type)  # a slip in a type is no input of a new kind
            text = json.dumps(insert.fields)
            _, new = json_input(codec, *split_stream(stream), insert.type, text, insert.id or f"inserted-{fact_id(insert.type, text).hex()[:12]}")
            return Piece(new.type, new.schema, new.data, new.event_id, moment, new.correlation)
        schema = codec.registry.get(insert.type).version  # type: ignore[union-attr]  # it is one of the facts
        event = codec.decode(insert.type, schema, codec.encode_value(insert.fields, dict[str, Any]))
        kind, schema, blob = codec.encode(event)
    except (LogError, AgentError) as problem:
        raise ForkRefused(f"{insert!s:.200} cannot be inserted: {problem}") from problem
    if not is_told(codec, kind, schema, blob):
        raise ForkRefused(f"{kind} cannot be inserted: the agent's code decides that. Insert what it is told: inputs, outcomes, timers, signals, decisions.")
    event_id = input_event_id(event.input_id) if isinstance(event, facts.InputReceived) else fact_id("inserted", kind, blob.hex())
    return Piece(kind, schema, blob, event_id, moment)
