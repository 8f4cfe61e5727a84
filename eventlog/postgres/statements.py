"""SQL text: whole statements from ``sql/*.sql``, with PostgreSQL's own ``$1`` for parameters.

Lists travel as arrays, so that a statement has one text, and is prepared once, however many rows it is about.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def statement(name: str) -> str:
    """The text of ``sql/<name>.sql``."""
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text("utf-8")
