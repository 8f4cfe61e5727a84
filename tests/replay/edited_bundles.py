"""Bundles that a hand was at."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from intentlog.replay.bundles.layout import MANIFEST

Members = dict[str, bytes]


def rewritten(bundle: Path, change: Callable[[Members], Members | None], *, honest: bool = True) -> Path:
    """The bundle with its members changed by ``change``; ``honest``: with the hash of its manifest made anew."""
    with zipfile.ZipFile(bundle) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members) or members
    edited = bundle.with_name("edited.bundle")
    with zipfile.ZipFile(edited, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = hashlib.sha256(members.get(MANIFEST, b"")).hexdigest().encode() if honest else b"0" * 64
    return edited


def with_events(edit: Callable[[list[list[Any]]], list[list[Any]]]) -> Callable[[Members], None]:
    """A change of the first stream's events, lists of columns, that the manifest knows of."""

    def change(members: Members) -> None:
        rows = edit(msgspec.msgpack.decode(members["streams/0"]))
        blob = members["streams/0"] = msgspec.msgpack.encode(rows)
        manifest = json.loads(members[MANIFEST])
        manifest["streams"][0]["events"] = len(rows)
        manifest["streams"][0]["member"] |= {"size": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        members[MANIFEST] = json.dumps(manifest).encode()

    return change


def with_cell(version: int, column: int, cell: Any) -> Callable[[Members], None]:
    """The change of one column of one event."""

    def edit(rows: list[list[Any]]) -> list[list[Any]]:
        rows[version][column] = cell
        return rows

    return with_events(edit)
