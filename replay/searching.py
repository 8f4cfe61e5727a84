"""Events that hold something: a text, a type, a value at a path, a key. Streamed from the log; memory holds one event."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs
import msgspec

from ..agents.app import App, runtime_codec
from ..eventlog.clock import Micros
from ..eventlog.codec import Codec
from ..eventlog.events import StoredEvent
from ..eventlog.log import EventLog
from ..eventlog.printing import as_text, cut, one_line, plain, to_json
from .allowing import matches
from .paths import ABSENT, Path, look
from .trees import fields_of_row

_AROUND: Final = 30


@attrs.frozen
class Search:
    """What is looked for. Everything given must hold."""

    #: Somewhere in the event's values; small letters only: large ones are found too.
    text: str = ""
    types: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    #: Patterns (``*``, ``?``) for the key; one must fit.
    keys: tuple[str, ...] = ()
    #: Values at paths into the event's fields.
    fields: tuple[tuple[Path, str], ...] = ()
    after: int = 0
    upto: int | None = None
    moment: Micros = 0
    until: Micros | None = None


@attrs.frozen
class Hit:
    """An event that was found."""

    stored: StoredEvent
    fields: Mapping[str, Any]
    #: Where the text stands, and what is around it; empty when no text was looked for.
    place: str = ""
    excerpt: str = ""


def search(log: EventLog, wanted: Search, app: App | None = None) -> Iterator[Hit]:
    """The events, in the order of the log. What cannot be decoded is looked into as far as its bytes can be."""
    codec = app.codec if app is not None else runtime_codec()
    ignoring = wanted.text == wanted.text.lower()
    needle = wanted.text.encode("utf-8", "surrogateescape")
    # A number stands in the bytes as no text, and capital letters beyond ASCII are not folded there.
    quick = needle if needle and needle.isascii() and not _is_number(wanted.text) else b""
    for stored in log.read_all(after=wanted.after, upto=wanted.upto, types=wanted.types, categories=wanted.categories):
        if stored.recorded_at < wanted.moment or (wanted.until is not None and stored.recorded_at > wanted.until):
            continue
        if wanted.keys and not any(matches(each, stored.stream.partition("-")[2]) for each in wanted.keys):
            continue
        if quick and not _may_hold(stored, quick, ignoring):
            continue
        fields = _fields(stored, codec)
        if not all(_fits(look(fields, path), value) for path, value in wanted.fields):
            continue
        if not wanted.text:
            yield Hit(stored, fields)
        elif (found := _found(stored, fields, wanted.text, ignoring)) is not None:
            yield Hit(stored, fields, *found)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("true", "false", "null", "none", "True", "False", "None")
    return True


def _may_hold(stored: StoredEvent, needle: bytes, ignoring: bool) -> bool:
    head = f"{stored.stream} {stored.type}".encode("utf-8", "surrogateescape")
    if not isinstance(stored.data, bytes):  # a hand's doing
        return True
    return needle in head.lower() + stored.data.lower() if ignoring else needle in head or needle in stored.data


def _fields(stored: StoredEvent, codec: Codec) -> Mapping[str, Any]:
    fields = fields_of_row((stored.version, stored.type, stored.schema, stored.data, stored.event_id, stored.recorded_at), codec)
    return fields or _foreign(stored)


def _foreign(stored: StoredEvent) -> Mapping[str, Any]:
    """What another program wrote, as far as it is JSON or text; what a hand left in place of bytes as it is."""
    if not isinstance(stored.data, bytes):
        return {"data": stored.data}
    try:
        return {"data": msgspec.json.decode(stored.data)}
    except msgspec.MsgspecError:
        try:
            return {"data": stored.data.decode()}
        except UnicodeDecodeError:
            return {}


def _fits(found: Any, wanted: str) -> bool:
    if found is ABSENT:
        return False
    if isinstance(found, str) and found == wanted:
        return True
    try:
        return bool(plain(found) == json.loads(wanted)) and isinstance(found, bool) == (wanted in ("true", "false"))
    except ValueError:
        return not isinstance(found, str | bool) and as_text(plain(found)) == wanted


def _found(stored: StoredEvent, fields: Mapping[str, Any], text: str, ignoring: bool) -> tuple[str, str] | None:
    for place, value in (("stream", stored.stream), ("type", stored.type), *_leaves(fields, "")):
        said = value if isinstance(value, str) else one_line(value if isinstance(value, bytes) else to_json(value))  # a number is found by any digit
        at = (said.lower() if ignoring else said).find(text)
        if at >= 0:
            begin = max(at - _AROUND, 0)
            return place, ("…" if begin else "") + cut(one_line(said[begin:]), len(text) + 2 * _AROUND)
    return None


def _name(key: Any) -> str:
    return key if isinstance(key, str) else as_text(plain(key, short=True))


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its path; depth first, without recursion."""
    waiting: list[tuple[str, Any]] = [(place, value)]
    while waiting:
        here, each = waiting.pop()
        if isinstance(each, Mapping):
            inside = [(f"{here}.{_name(name)}" if here else _name(name), part) for name, part in each.items()]
        elif isinstance(each, list | tuple | set | frozenset):
            inside = [(f"{here}[{number}]", part) for number, part in enumerate(each)]
        elif attrs.has(type(each)):
            inside = [(f"{here}.{field.name}" if here else field.name, getattr(each, field.name)) for field in attrs.fields(type(each))]
        else:
            yield here, each
            continue
        waiting.extend(reversed(inside))
