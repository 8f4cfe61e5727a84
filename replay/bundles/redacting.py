"""Taking values out of a history before it leaves the house: each becomes a keyed digest.

Equal values of one bundle get equal marks, so that who reads it still sees what changed; the key is forgotten, so that no
mark can be looked up by trying values, and a mark does not tell how long the value was. Whatever else would give a value
away goes with it: the digests that the runtime keeps of requests and arguments.

A path is ``[TYPE:]FIELD.FIELD…`` with ``*`` for any field or element or any part of a name, as
``eventlog search`` shows it: an element is ``.3`` or ``[3]``, and an input's own fields are reached through ``payload`` or without it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from ...agents.app import runtime_codec
from ...eventlog.codec import Codec
from ...eventlog.errors import LogError, Undecodable
from ...eventlog.events import StoredEvent
from ..allowing import matches
from ..errors import Unredactable

_STEP: Final = re.compile(r"""\.?([^.\[\]]+)|\[(\d+|\*)\]|\['([^']*)'\]|\["([^"]*)"\]""")
_INPUTS: Final = {"input.received": ("payload",), "activation.continued": ("input", "payload")}
"""Types whose fields hold an input, and where in them its payload is."""


@attrs.frozen
class Redaction:
    """One path."""

    text: str
    #: Only events, or inputs, of this type; empty for all.
    type: str
    path: tuple[str, ...]


def parse_redactions(texts: Sequence[str]) -> tuple[Redaction, ...]:
    """Paths as they are given on the command line. Raises ``Unredactable`` for one without a field.

    >>> parse_redactions(["refund.asked:customer.email", "messages[0].content"])[1].path
    ('messages', '0', 'content')
    """
    found = []
    for text in texts:
        head, bracket, rest = text.partition("[")
        kind, mark, first = head.rpartition(":")
        keys = _keys(first + bracket + rest)
        if not keys or (mark and not kind):
            raise Unredactable(f"{text!r:.120} is no path to redact: write [TYPE:]FIELD.FIELD…, for example refund.asked:customer.email or messages.*.content")
        found.append(Redaction(text, kind, keys))
    return tuple(found)


def _keys(path: str) -> tuple[str, ...]:
    """The keys of ``path``; empty when it is none."""
    steps = list(_STEP.finditer(path))
    if path.startswith(".") or "".join(each[0] for each in steps) != path:
        return ()
    return tuple(next((part for part in each.groups() if part is not None), "") for each in steps)


@attrs.define
class Redacting:
    """Redacts the events of one bundle under one key."""

    redactions: tuple[Redaction, ...]
    _key: bytes
    _codec: Codec = attrs.field(factory=runtime_codec)
    _used: set[str] = attrs.field(factory=set)

    @classmethod
    def of(cls, texts: Sequence[str], key: bytes) -> Redacting:
        """Raises ``Unredactable``."""
        return cls(parse_redactions(texts), key)

    def of_stream(self, events: Sequence[StoredEvent]) -> tuple[Sequence[StoredEvent], list[int]]:
        """``events`` with what the paths name replaced, and the versions of those that were changed."""
        if not self.redactions:
            return events, []
        done = [self._event(event) for event in events]
        return done, [new.version for old, new in zip(events, done, strict=True) if old.data != new.data]

    def without_digest(self, event: StoredEvent) -> StoredEvent:
        """``event`` with its digest of something else replaced by one that tells nothing of that."""
        tree = self._codec.tree(event.data)
        if not isinstance(tree.get("digest"), bytes):
            return event
        tree["digest"] = self._digest(tree["digest"], 32)
        return event._replace(data=self._codec.encode_value(tree, dict[str, Any]))

    def check_used(self) -> None:
        """Raise ``Unredactable`` for a path that named nothing: a slip in it would let out what it was to keep in."""
        for each in self.redactions:
            if each.text not in self._used:
                raise Unredactable(
                    f"No event has anything at {each.text!r:.120}, so nothing would be redacted. Write the path as search shows it: eventlog search TEXT"
                )

    def _event(self, event: StoredEvent) -> StoredEvent:
        try:
            tree = self._codec.tree(event.data)
        except Undecodable as problem:
            raise Unredactable(
                f"{event.stream} version {event.version} ({event.type}) cannot be read, so what it holds cannot be redacted: {problem}"
            ) from problem
        changed = self._all(event.type, tree)
        place = _INPUTS.get(event.type)
        if place is not None:
            changed = self._input(tree, event.type, place) or changed
        if not changed:
            return event
        if isinstance(tree.get("digest"), bytes):
            tree["digest"] = self._digest(tree["digest"], 32)
        try:
            return event._replace(data=self._codec.encode_value(tree, dict[str, Any]))
        except LogError as problem:
            raise Unredactable(f"{event.stream} version {event.version} ({event.type}) cannot be written without what was redacted: {problem}") from problem

    def _all(self, kind: str, tree: Any) -> bool:
        changed = False
        for each in self.redactions:
            if (not each.type or each.type == kind) and self._replace(tree, each.path):
                self._used.add(each.text)
                changed = True
        return changed

    def _input(self, tree: Any, kind: str, place: tuple[str, ...]) -> bool:
        """What the paths name inside of an input's own bytes."""
        for key in place[:-1]:
            tree = tree[key]
        payload = tree.get(place[-1])
        if not isinstance(payload, bytes):
            return False
        as_json = tree.get("format") == "json"
        try:
            inner = json.loads(payload) if as_json else self._codec.tree(payload)
        except (ValueError, Undecodable):
            return False  # it is not what it says it is; nothing can be named in it, only the whole of it
        changed = False
        for each in self.redactions:
            for path in _inside(each, (kind, tree.get("type") or ""), place):
                if self._replace(inner, path):
                    self._used.add(each.text)
                    changed = True
        if not changed:
            return False
        tree[place[-1]] = json.dumps(inner).encode() if as_json else self._codec.encode_value(inner, Any)
        return True

    def _replace(self, tree: Any, path: tuple[str, ...]) -> bool:
        key, rest = path[0], path[1:]
        if isinstance(tree, dict):
            places: list[Any] = [each for each in tree if _names(key, str(each))]
        elif isinstance(tree, list):
            places = [at for at in range(len(tree)) if _names(key, str(at))]
        else:
            return False
        changed = False
        for at in places:
            if rest:
                changed = self._replace(tree[at], rest) or changed
            elif tree[at] is not None:
                tree[at] = self._mark(tree[at])
                changed = True
        return changed

    def _mark(self, value: Any) -> str | bytes:
        blob = value if isinstance(value, bytes) else self._codec.encode_value(value, Any)
        mark = f"redacted:{self._digest(blob, 8).hex()}"
        return mark.encode() if isinstance(value, bytes) else mark

    def _digest(self, blob: bytes, size: int) -> bytes:
        return hashlib.blake2b(blob, digest_size=size, key=self._key).digest()


def _names(key: str, name: str) -> bool:
    return key == name or ("*" in key and matches(key, name))


def _inside(redaction: Redaction, kinds: tuple[str, str], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The path within an input's payload, which stands at ``place``; ``kinds`` are the types of the event and of the input."""
    size, path = len(place), redaction.path
    if redaction.type in ("", kinds[1]):
        yield path
    if redaction.type in ("", *kinds) and len(path) > size and all(_names(*both) for both in zip(path, place, strict=False)):
        yield path[size:]
