"""Where an event is, and where a writer believes the stream to be.

``version`` counts a stream's events from 0 without holes. ``position`` orders the whole log; it is an opaque,
growing integer and says nothing about how many events lie between two of them. An append states the version
it expects (S-3.4); there is no silent default.
"""

from __future__ import annotations

import enum
from typing import Final, TypeAlias


class Expect(enum.Enum):
    """Preconditions of an append that are not an exact version."""

    NO_STREAM = "no stream"
    EXISTS = "an existing stream"
    ANY = "any version"

    def __str__(self) -> str:
        return self.value


NO_STREAM: Final = Expect.NO_STREAM
"""The stream has no event yet."""
EXISTS: Final = Expect.EXISTS
"""The stream has at least one event."""
ANY: Final = Expect.ANY
"""No check: the append goes behind whatever is there."""

ExpectedVersion: TypeAlias = int | Expect
"""The version of the last event the writer has seen, or one of ``NO_STREAM``, ``EXISTS``, ``ANY``."""

EMPTY: Final = -1
"""The version of a stream without events; as an expected version it means the same as ``NO_STREAM``."""


def matches(expected: ExpectedVersion, actual: int) -> bool:
    """Whether a stream whose last version is ``actual`` (-1: empty) satisfies ``expected``.

    >>> matches(3, 3), matches(NO_STREAM, -1), matches(EXISTS, -1), matches(ANY, 12)
    (True, True, False, True)
    """
    if expected is ANY:
        return True
    if expected is EXISTS:
        return actual > EMPTY
    if expected is NO_STREAM:
        return actual == EMPTY
    return expected == actual
