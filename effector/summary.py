"""What a run came to, counted from the log behind where it began and from what this process did itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from ..agents.app import runtime_codec
from ..agents.appends import TURNS
from ..agents.facts import IntentSettled, StreamBlocked
from ..eventlog.clock import SECOND
from ..eventlog.errors import Undecodable
from ..eventlog.log import EventLog
from ..eventlog.printing import Column, iso, length, print_json, table
from .inputs import InputFile
from .process import Progress


@attrs.frozen
class Summary:
    """The numbers of one run. What other processes wrote meanwhile is not in them, parked inputs apart."""

    accepted: int
    duplicates: int
    refused: int
    skipped: int
    turns: int
    #: Settlements by status.
    settled: dict[str, int]
    #: Answers asked of the provider by this process.
    model_calls: int
    #: Inputs that were given up for now.
    parked: int
    #: Times that a stream was found blocked by an event its code cannot read.
    blocked: int
    #: Moment at which some key needs its next turn, when nothing is due before.
    next_due: int | None
    #: How far away that is, in µs.
    next_due_in: int
    #: Seconds.
    elapsed: float

    @property
    def dead_letters(self) -> int:
        """What was given up for now: inputs and streams."""
        return self.parked + self.blocked

    @classmethod
    def of(cls, log: EventLog, after: int, owner: str, progress: Progress, file: InputFile | None, model_calls: int, elapsed: float) -> Summary:
        """Counted when the run is over; ``after`` is the log's last position before it."""
        refused = len(progress.refused) + (file.refused if file is not None else 0)
        skipped = file.skipped if file is not None else 0
        due = log.schedule.next_wake(TURNS)
        wait = max(0, due - log.clock()) if due is not None else 0
        settled, parked, blocked = _ends(log, after, owner)
        return cls(progress.accepted, progress.duplicates, refused, skipped, progress.turns, settled, model_calls, parked, blocked, due, wait, elapsed)


def _ends(log: EventLog, after: int, owner: str) -> tuple[dict[str, int], int, int]:
    codec = runtime_codec()
    settled: Counter[str] = Counter()
    parked = blocked = 0
    for event in log.read_all(after=after, types=("activation.failed", "intent.settled", "stream.blocked")):
        try:
            fact = codec.decode_stored(event)
        except Undecodable:  # told of by whoever stands still at it
            continue
        if isinstance(fact, IntentSettled):
            settled[fact.status] += fact.settled_by == owner
        elif isinstance(fact, StreamBlocked):
            blocked += 1
        else:
            parked += fact.retry_at is None
    return {status: count for status, count in sorted(settled.items()) if count}, parked, blocked


def print_summary(summary: Summary, *, as_json: bool, worker_only: bool) -> None:
    """One object, or a short table."""
    rate = summary.turns / summary.elapsed if summary.elapsed > 0 else 0.0
    if as_json:
        due = iso(summary.next_due) if summary.next_due is not None else None
        own: dict[str, Any] = attrs.asdict(summary)
        del own["next_due_in"]
        own["dead_letters"] = summary.dead_letters
        print_json(own | {"elapsed": round(summary.elapsed, 3), "turns_per_second": round(rate, 1), "next_due": due})
        return
    rows: list[tuple[str, str]] = []
    if summary.accepted or summary.duplicates or summary.refused or summary.skipped:
        rows.append(
            ("inputs", _parts({"accepted": summary.accepted, "known before": summary.duplicates, "refused": summary.refused, "not wanted": summary.skipped}))
        )
    rows.append(("turns", f"{summary.turns:,}  ({rate:,.0f} a second)" if summary.turns else "0"))
    if not worker_only:
        rows.append(("intents settled", _parts(summary.settled) or "0"))
    rows.append(("model calls", f"{summary.model_calls:,}"))
    if summary.dead_letters:
        rows.append(("dead letters", f"{summary.dead_letters:,} new: eventlog dead-letters list"))
    if summary.next_due is not None:
        rows.append(("next due", f"in {length(summary.next_due_in)}" if summary.next_due_in else "now"))
    rows.append(("elapsed", length(int(summary.elapsed * SECOND))))
    table([Column("", style={"bold": True}), Column("")], rows, header=False)


def _parts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
