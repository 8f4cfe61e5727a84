"""The stores' own tables with nothing of ours in between: what the bounds are made of, and the scales.

``bare(url)`` gives it for any store. The tables are those that the product has made there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol, cast

Raw = tuple[Any, ...]
"""A row of ``events`` as it stands in the table."""


class Weight(NamedTuple):
    """Bytes in use, indexes and all; bytes of payload among them; events."""

    size: int
    payload: int
    events: int


class Bare(Protocol):
    """A connection to one log's tables."""

    #: Of ``events``, in order; the position comes first.
    columns: Sequence[str]

    def written(self, *, but: Sequence[str]) -> list[Raw]:
        """The rows of all events but those of the types ``but``, a stream's side by side and in order."""
        ...

    def last(self, stream: str) -> Raw:
        """The row of a stream's last event."""
        ...

    def insert(self, commits: Sequence[Sequence[Raw]]) -> float:
        """Seconds that it takes to insert these rows behind the ones that are there: a statement and a durable commit for each part."""
        ...

    def stream(self, name: str) -> Callable[[], list[Any]]:
        """A query for the whole stream, all rows fetched at once: (version, type, schema, data, …)."""
        ...

    def weigh(self) -> Weight:
        """What the whole log weighs now, once what was deleted or overwritten has been swept."""
        ...

    def close(self) -> None: ...


_MODULES: Final = {"sqlite": ("sqlite", "BareSqlite"), "postgresql": ("postgres", "BarePostgres")}


def bare(url: str) -> Bare:
    """The tables behind a log's URL."""
    module, name = _MODULES[url.partition("://")[0]]
    return cast("Bare", getattr(import_module(f".{module}", __package__), name)(url))
