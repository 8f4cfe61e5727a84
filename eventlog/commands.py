"""``eventlog init`` and ``eventlog tail``: the commands that know the log and nothing above it."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from .console import MOST, check_kept, json_option, log_option, masked, reading
from .printing import cut, iso, note, one_line, plain, print_json, say, styled, time_of_day, width

if TYPE_CHECKING:
    from .codec import Codec
    from .events import StoredEvent
    from .log import EventLog

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_APART: Final = 10.0
"""Seconds of quiet between two failures that make them two outages."""


@click.command()
@log_option
@json_option
def init(url: str, as_json: bool) -> None:
    """Make the log, or bring one of an older release up to date.

    Safe to run twice, and by two at once: a log that is there and up to date is left alone. Indexes that somebody dropped are made
    anew, or the rows in their way named. On PostgreSQL, run it as the role that owns the
    schema, and once after restoring a dump into another server.

    \b
    eventlog init
    eventlog init --log postgresql://owner@db/log
    """
    from .opening import prepare_log

    check_kept(url)
    made = prepare_log(url)
    if as_json:
        print_json({"url": masked(url), "made": made})
    else:
        say(f"{masked(url)} is ready: it was {'made, or brought up to date, just now' if made else 'there already and is left as it is'}.")


@click.command()
@log_option
@json_option
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended from now on, until ^C.")
@click.option(
    "-n", "count", metavar="N", type=click.IntRange(0, MOST), default=None, help="The last N events that pass the filters.  [default: 20, all with --after]"
)
@click.option("--after", metavar="POS", type=click.IntRange(0, MOST), default=None, help="Only events behind this position.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only events of this type; may be given several times.")
@click.option("--category", "categories", metavar="NAME", multiple=True, help="Only streams of this agent; may be given several times.")
def tail(url: str, as_json: bool, follow: bool, count: int | None, after: int | None, types: tuple[str, ...], categories: tuple[str, ...]) -> None:
    """Print the end of the log, one line an event.

    \b
    eventlog tail -n 5
    eventlog tail -f --type intent.settled --category orders
    """
    from .codec import Codec
    from .registry import EventRegistry
    from .watching import telling

    codec = Codec(EventRegistry())
    with reading(url) as log:
        upto = log.last_position()
        for event in _last(log, upto, after, count, types, categories):
            _print(codec, event, as_json)
        if follow:
            with telling(log):
                for event in _following(log, max(upto, after or 0), types, categories):
                    _print(codec, event, as_json)


def _last(log: EventLog, upto: int, after: int | None, count: int | None, types: tuple[str, ...], categories: tuple[str, ...]) -> Iterable[StoredEvent]:
    """The last ``count`` events; looks back ever further, because positions do not say how many events lie between."""
    if count is None and after is not None:
        return log.read_all(after=after, upto=upto, types=types, categories=categories)
    wanted = 20 if count is None else count
    first, back = after or 0, max(4 * wanted, 100)
    while wanted:
        start = max(first, upto - back)
        found = deque(log.read_all(after=start, upto=upto, types=types, categories=categories), maxlen=wanted)
        if len(found) == wanted or start == first:
            return found
        back *= 8
    return ()


def _following(log: EventLog, after: int, types: tuple[str, ...], categories: tuple[str, ...]) -> Iterator[StoredEvent]:
    """What is appended behind ``after``, for ever. A store that is gone is told of once, and asked again until it is back."""
    from .errors import LogUnavailable
    from .tail import tail as follow_tail

    pause, failed = _FIRST_PAUSE, float("-inf")
    while True:
        try:
            for batch in follow_tail(log, after=after, types=types, categories=categories, stop=lambda: False):
                for event in batch:
                    yield event
                    after = event.position
        except LogUnavailable as problem:
            if time.monotonic() - failed > _APART:
                pause = _FIRST_PAUSE
                note(f"{masked(one_line(str(problem), 2_000))} Asking again until it answers; ^C stops.")
            time.sleep(pause)
            pause, failed = min(pause * 2, _LONGEST_PAUSE), time.monotonic()


def _print(codec: Codec, event: StoredEvent, as_json: bool) -> None:
    if as_json:
        print_json(as_object(codec, event))
        return
    place = f"{event.position:>7}  "
    head = f"{time_of_day(event.recorded_at)}  {one_line(event.stream)} {event.version}  "
    kind = one_line(event.type)
    room = max(width() - len(place) - len(head) - len(kind) - 3, 12)
    say(styled(place, dim=True) + head + styled(kind, fg="cyan") + "  " + styled(summary(codec, event, room), dim=True))


def summary(codec: Codec, event: StoredEvent, room: int) -> str:
    """An event's fields in one line; those that are empty are left out.

    What cannot be read is told by its size: a tail shows that an event is there whatever it holds.
    """
    if odd := _odd(event):
        return f"was edited by hand: {one_line(odd)}. See: eventlog raw {one_line(event.stream)}"
    tree = fields_of(codec, event)
    if not isinstance(tree, dict):
        return one_line(tree, room)
    parts = [f"{name}={one_line(value, min(room, 60))}" for name, value in tree.items() if value not in (None, "", b"", [], {}, ())]
    return cut(" ".join(parts), room)


def as_object(codec: Codec, event: StoredEvent) -> dict[str, Any]:
    """An event, whole, as JSON gives it."""

    def identity(value: Any) -> Any:
        return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) and len(value) == 16 else plain(value)

    return {
        "position": event.position,
        "stream": event.stream,
        "version": event.version,
        "id": identity(event.event_id),
        "type": plain(event.type),
        "schema": plain(event.schema),
        "recorded_at": iso(event.recorded_at),
        "correlation": identity(event.correlation),
        "causation": identity(event.causation),
        "fields": plain(fields_of(codec, event)),
        **({"problem": odd} if (odd := _odd(event)) else {}),
    }


def _odd(event: StoredEvent) -> str:
    """What a hand has put into the event's columns; empty for an event as it was written."""
    from .odd import odd_columns

    return "; ".join(odd_columns(event))


def fields_of(codec: Codec, event: StoredEvent) -> Any:
    """The event's fields as plain values; its bytes when they are not in our format."""
    from .errors import Undecodable

    if not isinstance(event.data, bytes):  # a hand's doing
        return event.data
    try:
        return codec.tree(event.data)
    except Undecodable:
        return event.data
