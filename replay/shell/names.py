"""The names that Python in the shell finds: what stands at the cursor. Copies and views; none of them leads to the log."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, overload

LIVE: Final = ("st", "run", "ev", "prev", "log", "view", "stored", "version", "stream")


class History(Sequence[Any]):
    """``log``: the events of the stream by version, decoded. ``log[3]``, ``log[-1]``, ``log[2:5]``, ``len(log)``."""

    def __init__(self, stream: str, length: int, event: Callable[[int], Any]) -> None:
        self._stream = stream
        self._length = length
        self._event = event

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self._event(version) for version in range(self._length)[place]]
        if not -self._length <= place < self._length:
            raise IndexError(f"{self._stream} has no version {place}: its versions are 0 to {self._length - 1}")
        return self._event(range(self._length)[place])

    def __iter__(self) -> Iterator[Any]:
        return (self._event(version) for version in range(self._length))

    def __repr__(self) -> str:
        return f"<{self._stream}: {self._length:,} events>"


def names_in(code: types.CodeType) -> frozenset[str]:
    """Every name that compiled code may look up, functions within it included."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*map(names_in, inner))


def compiled(text: str) -> tuple[types.CodeType, bool]:
    """``text`` compiled, and whether it is an expression; raises ``SyntaxError``."""
    try:
        return compile(text.strip(), "<shell>", "eval", dont_inherit=True), True
    except SyntaxError:
        return compile(text if text.endswith("\n") else f"{text}\n", "<shell>", "exec", dont_inherit=True), False


def bind(namespace: dict[str, Any], wanted: frozenset[str], live: Mapping[str, Callable[[], Any]]) -> None:
    """Put those of the live names into ``namespace`` that are wanted; making all of them would cost more than most lines do."""
    for name in wanted & live.keys():
        namespace[name] = live[name]()
