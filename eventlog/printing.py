"""How the command's answers look: tables that fit, JSON that is whole, colour on terminals only.

Everything that came out of a log goes through ``one_line`` or JSON, so that no recorded control character reaches a terminal.
"""

from __future__ import annotations

import base64
import enum
import errno
import json
import math
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TextIO
from uuid import UUID

import attrs
import click

from .clock import MILLISECOND, SECOND, Micros, to_datetime

ELLIPSIS: Final = "…"
_MOST_TOLD: Final = 400
_MOST_BITS: Final = 2_100
"""Of a number that a person is shown whole: some 632 digits, fewer than Python prints whatever limit it is given."""
_MOST_COUNTED: Final = 4_000_000
"""Bits of a number whose digits are counted exactly; of a longer one the count may be off by one."""
_LIMIT: Final = threading.RLock()
_LEAST: Final = 8
"""Cells that a column keeps that gives way."""
_NARROW: Final = 80
"""Columns of a terminal below which even an id may be cut."""
NO_TIME: Final = "(no time)"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(value: Any, *, short: bool = False) -> Any:
    """``value`` as JSON can hold it, whole: bytes as ``{"$bytes": base64}``, moments as ISO 8601, non-finite floats as text.

    With ``short``, a number that nobody reads digit by digit is told by its length.

    >>> plain({"at": date(2026, 1, 2), "raw": b"abc"})
    {'at': '2026-01-02', 'raw': {'$bytes': 'YWJj'}}
    >>> plain([10**1000, 7], short=True)
    ['<a number of 1,001 digits>', 7]
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
        return _length_of(value) if short and isinstance(value, int) and value.bit_length() > _MOST_BITS else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, enum.Enum):
        return plain(value.value, short=short)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else as_text(plain(key, short=short)): plain(each, short=short) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(each, short=short) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, list | tuple):
        return [plain(each, short=short) for each in value]
    if attrs.has(type(value)):
        return {field.name: plain(getattr(value, field.name), short=short) for field in attrs.fields(type(value))}
    return str(value) if isinstance(value, Decimal | UUID) else repr(value)


def as_text(value: Any) -> str:
    """``str(value)``, for a number of any size as well."""
    try:
        return str(value)
    except ValueError:  # a number of more digits than Python prints unasked
        with _any_number():
            return str(value)


def _length_of(number: int) -> str:
    digits = int(math.log10(abs(number))) + 1  # which takes ints of any size, and may be off by one next to a power of ten
    if number.bit_length() <= _MOST_COUNTED:
        digits += (abs(number) >= 10**digits) - (abs(number) < 10 ** (digits - 1))
    return f"<a {'negative ' if number < 0 else ''}number of {digits:,} digits>"


def to_json(value: Any, *, short: bool = False) -> str:
    """One line of JSON; text stays readable unless it holds a lone surrogate, which has no UTF-8 form. ``short``: see ``plain``."""
    try:
        return _json(value, short)
    except ValueError:  # as in ``as_text``
        with _any_number():
            return _json(value, short)


def from_json(text: str) -> Any:
    """What a JSON text says, with numbers of any size. Raises ``ValueError`` for what is no JSON."""
    with _any_number():
        return json.loads(text)


def _json(value: Any, short: bool) -> str:
    text = json.dumps(plain(value, short=short), ensure_ascii=False, separators=(", ", ": "))
    return text if text.isascii() or text.encode("utf-8", "replace").decode() == text else json.dumps(plain(value, short=short))


@contextmanager
def _any_number() -> Iterator[None]:
    """Python's limit on the digits of a number in text is off for the moment, in the whole process: what is on the log is printed whole."""
    with _LIMIT:
        before = sys.get_int_max_str_digits()
        sys.set_int_max_str_digits(0)
        try:
            yield
        finally:
            sys.set_int_max_str_digits(before)


def one_line(value: Any, width: int = 0) -> str:
    """``value`` for a person: strings as they are, the rest as JSON, control characters escaped, cut to ``width`` cells.

    Very long numbers are told by their length.

    >>> one_line({"a": [1, 2]}), one_line("two\\nlines"), one_line("abcdef", 4)
    ('{"a": [1, 2]}', 'two\\\\nlines', 'abc…')
    """
    if isinstance(value, bytes):
        text = f"{len(value)} bytes"
    else:
        # The front is enough of a long string, and escaping megabytes for one line is not.
        text = value[: 4 * width] if isinstance(value, str) and width else value if isinstance(value, str) else to_json(value, short=True)
    return cut(_CONTROL.sub(_escaped, text), width) if width else _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape", "surrogatepass").decode() if match.group() != "\n" else "\\n"


def cut(text: str, width: int) -> str:
    """``text`` in at most ``width`` terminal cells."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + ELLIPSIS


def moment(micros: Micros) -> str:
    """Date and time in UTC to the millisecond; ``(no time)`` for what is none, as a hand may have left it in a log."""
    try:
        return to_datetime(micros).isoformat(" ", "milliseconds").removesuffix("+00:00")
    except (TypeError, OverflowError):
        return NO_TIME


def time_of_day(micros: Micros) -> str:
    """Time in UTC to the millisecond: ``09:14:02.113``."""
    text = moment(micros)
    return text[11:] if text != NO_TIME else f"{NO_TIME:<12}"


def iso(micros: Micros) -> str:
    """The moment as JSON gives it."""
    try:
        return to_datetime(micros).isoformat(timespec="microseconds")
    except (TypeError, OverflowError):
        return NO_TIME


def length(micros: Micros) -> str:
    """A length of time for a person.

    >>> length(408_000), length(1_230_000), length(192_000_000), length(7_380_000_000)
    ('408 ms', '1.23 s', '3 min 12 s', '2 h 3 min')
    """
    if micros < SECOND:
        return f"{micros / MILLISECOND:.3g} ms" if micros < 10 * MILLISECOND else f"{micros // MILLISECOND} ms"
    seconds = micros // SECOND
    if seconds < 60:
        return f"{micros / SECOND:.3g} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"


# ── lines and tables ────────────────────────────────────────────────────────────────────────────────────────────────


_apart: list[TextIO] = []
"""Where answers go while what else is printed goes elsewhere; empty: to stdout like everything."""


def _answers() -> TextIO | None:
    return _apart[-1] if _apart else sys.stdout


@contextmanager
def apart() -> Iterator[None]:
    """While it lasts, answers alone go to stdout; what users' code and the programs it calls print there goes to stderr."""
    if _apart or sys.stdout is None:
        yield
        return
    stdout = sys.stdout
    with _descriptor_apart(stdout) as answers:
        _apart.append(answers)
        sys.stdout = sys.stderr
        try:
            yield
        finally:
            sys.stdout = stdout
            _apart.clear()


@contextmanager
def _descriptor_apart(stdout: TextIO) -> Iterator[TextIO]:
    """``stdout`` by a descriptor of its own, and descriptor 1 is stderr; ``stdout`` itself where it is a terminal's, or no file's."""
    try:
        alone = stdout.fileno() == 1 and not stdout.isatty() and os.fstat(2) is not None
    except (OSError, ValueError):
        alone = False
    if not alone:
        yield stdout
        return
    stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    answers = open(kept, "w", encoding=stdout.encoding, errors=stdout.errors, closefd=False)  # noqa: SIM115 - closed below, whatever it still holds
    try:
        yield answers
    finally:
        os.dup2(kept, 1)
        try:
            answers.close()
        except OSError:  # whoever printed was told
            pass
        finally:
            os.close(kept)


def on_terminal() -> bool:
    """Whether a person looks at the answers."""
    answers = _answers()
    return answers is not None and answers.isatty()


def width() -> int:
    """Columns of the terminal; unbounded when the output goes elsewhere, for a pipe has no edge to fit."""
    if not on_terminal():
        return 1_000_000
    from shutil import get_terminal_size

    return max(get_terminal_size((100, 24)).columns, 40)


def styled(text: str, **style: Any) -> str:
    """``text`` in a style (click's: ``fg``, ``bold``, ``dim``) when stdout is a terminal and NO_COLOR is not set."""
    return click.style(text, **style) if on_terminal() and not os.environ.get("NO_COLOR") else text


class Unprinted(OSError):
    """The answer could not be printed; what the command did is done."""


@contextmanager
def printing() -> Iterator[None]:
    """Tells a failure of stdout from one of the log: a closed pipe goes through as it is, the rest as ``Unprinted``."""
    if _answers() is None:
        raise Unprinted(errno.EBADF, "stdout is closed")
    try:
        yield
    except OSError as problem:
        if problem.errno == errno.EPIPE or isinstance(problem, Unprinted):
            raise
        raise Unprinted(problem.errno, f"printing to stdout failed: {problem.strerror or problem}") from problem


def to_nowhere(stream: TextIO) -> None:
    """Let what ``stream`` still holds go nowhere: the interpreter's last flush would fail once more, and end with a code of its own."""
    with suppress(OSError, ValueError):  # it is no file: a test's
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(text: str = "") -> None:
    """A line on stdout; raises ``Unprinted``."""
    with printing():
        click.echo(text, file=_answers())


def note(text: str) -> None:
    """A line on stderr: progress and remarks that are not the answer, which comes although nobody takes them."""
    try:
        click.echo(text, err=True)
    except OSError:
        to_nowhere(sys.stderr)


def print_json(value: Any) -> None:
    """One object on a line of its own; raises ``Unprinted``."""
    text = to_json(value)
    with printing():
        click.echo(text, file=_answers())


@attrs.frozen
class Column:
    """A column of a table."""

    title: str
    #: Numbers stand right.
    right: bool = False
    #: The column that gives way when the terminal is narrow; several share the loss.
    gives: bool = False
    #: What somebody types again, as ids: not cut on a terminal of 80 columns, unless it gives and nothing else is left to.
    whole: bool = False
    #: Tells, and names nothing: stands on a line of its own below the row when the table would not fit, and is cut in a pipe, too.
    below: bool = False
    style: Mapping[str, Any] = attrs.field(factory=dict)


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], *, header: bool = True) -> None:
    """Rows under each other; on a terminal no line is wider than it."""
    from rich.cells import cell_len

    # In a pipe, too, an error of pages is no line of a table.
    most_of = [_MOST_TOLD if on_terminal() or column.below else 0 for column in columns]
    texts = [[one_line("" if cell is None else cell, most_of[i]) for i, cell in enumerate(row)] for row in rows]
    titles = [column.title for column in columns] if header else ["" for _ in columns]
    most = width()
    widths = [max([cell_len(titles[i]), *(cell_len(row[i]) for row in texts)]) for i in range(len(columns))]
    least = [min(size, _LEAST) if column.gives and not column.whole else size for column, size in zip(columns, widths, strict=True)]
    under = [i for i, column in enumerate(columns) if column.below] if _length(least) > most else []
    beside = [i for i in range(len(columns)) if i not in under]
    shown = [columns[i] for i in beside]
    widths = _fitted(shown, [widths[i] for i in beside], most)
    if header:
        say(styled(_row(shown, widths, [titles[i] for i in beside], plain=True), bold=True))
    for row in texts:
        say(_row(shown, widths, [row[i] for i in beside]))
        if rest := "  ".join(f"{titles[i]} {row[i]}".strip() for i in under if row[i]):
            say(cut(f"    {rest}", most))


def _length(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _fitted(columns: Sequence[Column], widths: Sequence[int], most: int) -> list[int]:
    found, over = list(widths), _length(widths) - most
    while over > 0 and (i := _widest(columns, found, most)) is not None:
        found[i] -= 1
        over -= 1
    return found


def _widest(columns: Sequence[Column], widths: Sequence[int], most: int) -> int | None:
    """The column that gives way next."""
    wide = [i for i, size in enumerate(widths) if size > _LEAST]
    giving = [i for i in wide if columns[i].gives and not columns[i].whole]
    giving = giving or [i for i in wide if not columns[i].whole] or [i for i in wide if columns[i].gives]
    return max(giving or (wide if most < _NARROW else []), key=widths.__getitem__, default=None)


def _row(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[str], *, plain: bool = False) -> str:
    from rich.cells import cell_len

    parts = []
    for i, (column, size, cell) in enumerate(zip(columns, widths, cells, strict=True)):
        text = cut(cell, size)
        pad = " " * (size - cell_len(text))
        shown = styled(text, **column.style) if column.style and text and not plain else text
        parts.append(pad + shown if column.right else shown if i == len(columns) - 1 else shown + pad)
    return "  ".join(parts).rstrip()
