"""That a zip is its members and nothing else. Whoever reads one passes over bytes before, between and behind them."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Final

from ..errors import BrokenBundle
from .layout import AGAIN

_LOCAL: Final = 30
"""Bytes of a member's own header, without its name and extra field."""
_LISTED: Final = 46
"""Bytes of its line in the list at the end, without name, extra field and comment."""
_END: Final = 22
_END_OF_MANY: Final = 76
"""Two more records in front of the end, with more than 65,535 members."""
_MOST: Final = 0xFFFF


def check_nothing_else(file: Path, archive: zipfile.ZipFile) -> None:
    """Raise ``BrokenBundle`` for a byte that belongs to no member, nor to the list of them."""
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    at = 0
    with file.open("rb") as raw:
        for info in infos:
            if info.header_offset != at:
                raise _odd(file, at)
            raw.seek(at + _LOCAL - 4)
            named, extra = struct.unpack("<HH", raw.read(4))
            at += _LOCAL + named + extra + info.compress_size
        if archive.start_dir != at:
            raise _odd(file, at)
        listed = sum(_LISTED + len(info.orig_filename.encode(_coded(info))) + len(info.extra) + len(info.comment) for info in infos)
        end = at + listed + (_END_OF_MANY if len(infos) > _MOST else 0) + _END + len(archive.comment)
        if raw.seek(0, 2) != end:
            raise _odd(file, end)


def _coded(info: zipfile.ZipInfo) -> str:
    return "utf-8" if info.flag_bits & 0x800 else "cp437"


def _odd(file: Path, at: int) -> BrokenBundle:
    return BrokenBundle(f"{file} was edited: at byte {at:,} it holds something that no bundle is made with. {AGAIN}")
