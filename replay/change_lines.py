"""Changes as people and programs read them: bounded, what is large as its size and digest, both sides with what differs in view."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ..eventlog.printing import as_text, cut, one_line, plain, styled
from .diff import Change, ChangeKind
from .paths import ABSENT, path_text
from .reports import windows

MOST: Final = 100
"""Changes that are shown unless more are asked for."""
_SIGNS: Final = {ChangeKind.ADDED: ("+", "green"), ChangeKind.REMOVED: ("-", "red"), ChangeKind.CHANGED: ("~", "yellow")}
_LONGEST_NAME: Final = 40
_LONGEST_TEXT: Final = 4_000


def blobs_shown(value: Any) -> Any:
    """``value`` as JSON can hold it, with bytes as size and digest, and a text of more than 4,000 characters as its beginning.

    >>> blobs_shown({"raw": b"abc"})
    {'raw': {'$blob': '3 bytes sha256 ba7816bf8f01cfea'}}
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$blob": blob_text(bytes(value))}
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else as_text(plain(key)): blobs_shown(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [blobs_shown(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(blobs_shown, value), key=lambda each: as_text([each]))
    if attrs.has(type(value)):
        return {field.name: blobs_shown(getattr(value, field.name)) for field in attrs.fields(type(value))}
    return plain(value)


def blob_text(blob: bytes) -> str:
    """Size and digest of bytes."""
    return f"{len(blob):,} {'byte' if len(blob) == 1 else 'bytes'} sha256 {hashlib.sha256(blob).hexdigest()[:16]}"


def value_text(value: Any) -> str:
    """A value on one line: text in quotes, bytes as size and digest, nothing as ``–``.

    >>> value_text("o-1"), value_text(None), value_text(b"abc")
    ("'o-1'", 'null', '3 bytes sha256 ba7816bf8f01cfea')
    """
    if value is ABSENT:
        return "–"
    if isinstance(value, bytes | bytearray | memoryview):
        return blob_text(bytes(value))
    return one_line(repr(value) if isinstance(value, str) else _whole_text(blobs_shown(value)))


def _whole_text(value: Any) -> str:
    from ..eventlog.printing import to_json

    return value if isinstance(value, str) else to_json(value, short=True)


def change_lines(changes: Sequence[Change], *, width: int, most: int = MOST) -> Iterator[str]:
    """A line a change, two more where its sides need them; at the most ``most`` changes, and how many more there are."""
    from rich.cells import cell_len

    shown = changes[:most]
    names = [cut(one_line(path_text(change.path) or "(all)"), max(width // 2, 20)) for change in shown]
    column = min(max(map(cell_len, names), default=0), _LONGEST_NAME)
    for change, name in zip(shown, names, strict=True):
        yield from _lines_of(change, name + " " * (column - cell_len(name)), max(width, 40))
    if len(changes) > most:
        yield styled(f"… and {len(changes) - most:,} more: name a PATH, or give --most or --json", dim=True)


def _lines_of(change: Change, name: str, width: int) -> Iterator[str]:
    from rich.cells import cell_len

    sign, colour = _SIGNS[change.kind]
    head, room = f"{sign} {name}  ", width - cell_len(name) - 4
    shown = styled(head.rstrip(), fg=colour) + head[len(head.rstrip()) :]
    if change.kind is not ChangeKind.CHANGED:
        value = change.after if change.kind is ChangeKind.ADDED else change.before
        in_its_name = bool(change.path) and change.path[-1] is value  # an element of a set
        yield shown.rstrip() if in_its_name else shown + cut(value_text(value), max(room, 16))
        return
    before, after = value_text(change.before), value_text(change.after)
    if cell_len(before) + cell_len(after) + 3 <= room and len(before) + len(after) < _LONGEST_TEXT:
        yield f"{shown}{before} → {after}"
        return
    left, right, start, size = windows(before, after, max(width - 12, 20))
    yield shown.rstrip()
    yield f"    before  {left}"
    yield f"    after   {right}"
    yield " " * (12 + start) + styled("^" * size, fg=colour)


def change_tree(change: Change) -> dict[str, Any]:
    """A change as ``--json`` prints it; a side that is not there is left out."""
    sides = {"before": change.before, "after": change.after}
    return {"path": path_text(change.path), "kind": change.kind.value} | {side: blobs_shown(value) for side, value in sides.items() if value is not ABSENT}
