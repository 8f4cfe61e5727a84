"""``eventlog stats``: a log in figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from ..eventlog.console import MOST, complete_streams, json_option, log_option, reading
from ..eventlog.printing import Column, iso, moment, one_line, print_json, say, table

if TYPE_CHECKING:
    from .stats import Stats
    from .stats_events import Amount, EventStats

_COLUMNS: Final = ("agent", "streams", "events", "open", "suspended", "parked", "blocked")


@click.command()
@click.argument("prefix", default="", shell_complete=complete_streams)
@click.option("--warn-history", metavar="N", type=click.IntRange(1, MOST), help="Mark activations with so many events.  [default: 10000]")
@click.option("--events", "reads", is_flag=True, help="Read every event: types, bytes, model calls and their cost, what is waited for.")
@click.option("--since", metavar="WHEN", help="Events since then (36h, 7d, 2026-01-31T09:14, @POSITION); as with --events.")
@click.option("--until", metavar="WHEN", help="Events until then, that second or day included; as with --events.")
@log_option
@json_option
def stats(prefix: str, warn_history: int | None, reads: bool, since: str | None, until: str | None, url: str, as_json: bool) -> None:
    """A log in figures: its agents, what is open, and the longest histories.

    PREFIX: only streams whose names begin with it. Told from the ends of the streams, unless events are asked for.

    \b
    eventlog stats orders- --since 7d
    """
    from .stats import WARN_HISTORY
    from .stats import stats as counted
    from .stats_events import event_stats, waiting

    with reading(url) as log:
        found = counted(log, prefix, warn_history=warn_history or WARN_HISTORY)
        read = waits = None
        if reads or since is not None or until is not None:
            read, waits = event_stats(log, prefix, **_range(log, since, until)), waiting(log, prefix)
    if as_json:
        print_json(_tree(found) | (_events_tree(read, waits or {}) if read is not None else {}))
        return
    _tell(found)
    if read is not None:
        _tell_events(read, waits or {}, since, until)


def _range(log: Any, since: str | None, until: str | None) -> dict[str, Any]:
    from ..eventlog.since import parse_moment, position_before

    begin, first = parse_moment(since, log.clock()) if since is not None else (0, 0)
    end, last = parse_moment(until, log.clock(), ends=True) if until is not None else (0, 0)
    after = max(first - 1, 0) if first else position_before(log, begin) if begin else 0
    return {"after": after, "upto": last or None, "moment": begin, "until": end or None}


def _tell(found: Stats) -> None:
    say(f"{found.streams} streams, {found.events} events")
    rows = [(each.agent, each.streams, each.events, each.open, each.suspended, each.parked, each.blocked) for each in found.agents.values()]
    if not rows:
        return
    say("")
    table([Column(name, right=name != "agent", gives=name == "agent") for name in _COLUMNS], rows)
    say("")
    columns = [Column("longest streams", gives=True), Column("events", right=True), Column("of the open activation", right=True), Column("")]
    table(columns, [(each.stream, each.events, each.history or "", "! goes on afresh with ctx.continue_with" if each.warned else "") for each in found.longest])
    if sum(found.lengths.values()) > len(found.longest):
        say("")
        table([Column("streams of"), Column("", right=True)], [(_length(power), count) for power, count in sorted(found.lengths.items())])


def _length(power: int) -> str:
    least = 10**power
    return f"{least:,} to {10 * least - 1:,} events" if power >= 0 else "no event"


def _tell_events(read: EventStats, waits: Mapping[str, int], since: str | None, until: str | None) -> None:
    say("")
    asked = (f" since {since}" if since is not None else "") + (f" until {until}" if until is not None else "")
    span = f", recorded from {moment(read.first_at)} to {moment(read.last_at)} UTC" if read.total.events else ""
    say(f"{read.total.events:,} events{one_line(asked)}, {read.total.bytes:,} bytes of payload{span}")
    for title, amounts in (("type", read.types), ("agent", read.agents)):
        if amounts:
            say("")
            columns = [Column(title, gives=True), *(Column(name, right=True) for name in ("events", "bytes", "each", "largest"))]
            rows = [(name, *(f"{n:,}" for n in (of.events, of.bytes, of.bytes // of.events, of.largest))) for name, of in _by_size(amounts)]
            table(columns, rows)
    if read.models:
        from .budgets import amount

        say("")
        columns = [Column("model", gives=True), *(Column(name, right=True) for name in ("calls", "tokens in", "tokens out", "cost"))]
        models = sorted(read.models.items(), key=lambda each: (-each[1].picos, -each[1].calls, each[0]))
        table(columns, [(name, f"{c.calls:,}", f"{c.input_tokens:,}", f"{c.output_tokens:,}", amount(c.picos) if c.picos else "") for name, c in models])
    if waits:
        say("")
        table([Column("waited for"), Column("", right=True)], sorted(waits.items()))


def _by_size(amounts: Mapping[str, Amount]) -> list[tuple[str, Amount]]:
    return sorted(amounts.items(), key=lambda each: (-each[1].bytes, each[0]))


def _tree(found: Stats) -> dict[str, Any]:
    agents = [{name: getattr(each, name) for name in _COLUMNS} for each in found.agents.values()]
    longest = [{"stream": each.stream, "events": each.events, "history": each.history, "warned": each.warned} for each in found.longest]
    lengths = [{"least": 10**power if power >= 0 else 0, "streams": count} for power, count in sorted(found.lengths.items())]
    return {"streams": found.streams, "events": found.events, "agents": agents, "longest": longest, "lengths": lengths}


def _events_tree(read: EventStats, waits: Mapping[str, int]) -> dict[str, Any]:
    from .budgets import amount

    def amounts(of: Mapping[str, Amount], title: str) -> list[dict[str, Any]]:
        return [{title: name, "events": each.events, "bytes": each.bytes, "largest": each.largest} for name, each in _by_size(of)]

    models = [
        {"model": name, "calls": each.calls, "input_tokens": each.input_tokens, "output_tokens": each.output_tokens, "cost": amount(each.picos)}
        for name, each in sorted(read.models.items())
    ]
    return {
        "range": {
            "events": read.total.events,
            "bytes": read.total.bytes,
            "first": iso(read.first_at) if read.total.events else None,
            "last": iso(read.last_at) if read.total.events else None,
            "types": amounts(read.types, "type"),
            "agents": amounts(read.agents, "agent"),
            "models": models,
        },
        "waits": dict(sorted(waits.items())),
    }
