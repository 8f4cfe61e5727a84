"""SQL text: whole statements from ``sql/*.sql``, and those that take a list of rows at a fixed number of rows.

A statement is prepared once for each number of rows and then stays in the driver's cache. One statement for many rows
matters beyond SQLite's own cost: every step lets the interpreter lock go, and taking it back from a busy thread costs
more than the rows do.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import resources
from typing import Final

ROWS_MARK: Final = ":rows"


@cache
def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")


@lru_cache(maxsize=4096)
def for_rows(name: str, width: int, count: int) -> str:
    """The statement ``name`` with ``:rows`` standing for ``count`` rows of ``width`` parameters."""
    return statement(name).replace(ROWS_MARK, rows_of_marks(width, count))


@lru_cache(maxsize=4096)
def rows_of_marks(width: int, count: int) -> str:
    """``(?,?),(?,?)`` for two rows of two."""
    return ",".join(["(" + ",".join("?" * width) + ")"] * count)


def marks(count: int) -> str:
    """``?,?,?`` for three."""
    return ",".join("?" * count)
