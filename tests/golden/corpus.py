"""Every event type and version there ever was, as bytes: ``corpus.json``, one line an instance.

``python -m tests.golden.corpus`` adds what is registered and not in it yet. It never changes or drops a line: what was
written once must be readable for ever.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from intentlog.agents import facts
from intentlog.eventlog.codec import Codec
from intentlog.eventlog.registry import EventRegistry, event_name
from intentlog.replay.forking.begun import ForkBegun, ForkMerged
from tests.golden import evolving
from tests.golden.filling import filled, least

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("corpus.json")


@attrs.frozen
class Line:
    """One instance."""

    type: str
    version: int
    #: ``least``, ``plain`` or ``rich``.
    variant: str
    #: What its fields were when it was written, as canonical bytes of plain values.
    hex: str


def recorded() -> list[Line]:
    """The corpus."""
    return [Line(**json.loads(line)) for line in FILE.read_text("utf-8").splitlines()] if FILE.exists() else []


def example_events() -> Iterator[type]:
    """The event classes of every example."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        if "@event(" in path.read_text("utf-8"):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            yield from (
                each for each in vars(module).values() if isinstance(each, type) and "__event_type__" in vars(each) and each.__module__ == module.__name__
            )


def registered() -> list[type]:
    """Everything that must be in the corpus. Examples may give different events the same name: they are different programs."""
    return [*facts.FACTS, *dict.fromkeys(example_events()), ForkBegun, ForkMerged, *evolving.EVENTS]


def codec_of(cls: type) -> Codec:
    """A codec that knows ``cls`` as its program does."""
    mine = [each for each in evolving.UPCASTERS if each.__upcasts__[0] == event_name(cls)[0]]  # type: ignore[attr-defined]
    return Codec(EventRegistry(cls, upcasters=mine))


def lines_of(cls: type) -> list[Line]:
    """The instances of one class as it is today."""
    codec, (name, version) = codec_of(cls), event_name(cls)
    made: dict[str, Any] = {"least": least(cls), "plain": filled(cls, "plain"), "rich": filled(cls, "rich")}
    return [Line(name, version, variant, codec.encode(each)[2].hex()) for variant, each in made.items()]


def missing() -> list[Line]:
    """What is registered and has no line in the corpus."""
    have = {(line.type, line.version) for line in recorded()}
    return [line for cls in registered() if event_name(cls) not in have for line in lines_of(cls)]


if __name__ == "__main__":
    with FILE.open("a", encoding="utf-8") as corpus:
        for line in missing():
            corpus.write(json.dumps(attrs.asdict(line)) + "\n")
            print(f"added {line.type} version {line.version} ({line.variant})")
