"""P2: folding a stream of 20,000 events from the store into an aggregate.

Measured: ``Folder`` over ``log.rows()``, as a worker, ``eventlog state`` and replay do it: five event types of two to
four fields, an aggregate with an applier for each.

Bound: the same query on a bare connection (PostgreSQL: a binary cursor), all rows fetched at once, the same decoders, a bare loop with one look-up by
type for each event and a plain object changed in place. Nothing of ours runs in it but the decoders. Beside it, without a
bar: the same loop with our appliers, which is what is left when only the fold's own loop is compared.

Rival: ``eventsourcing``, ``repository.get`` of a 20,000-event aggregate with its own recorder for the same store and its
JSON transcoder as they come.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from intentlog.agents import ActivationContext, Aggregate, App, Complete, agent, applies
from intentlog.agents.streams import Folder
from intentlog.eventlog import NO_STREAM, Codec, EventLog, event, open_log

from .bare import bare
from .measuring import Line, in_turns
from .rivals import eventsourcing_get
from .sizes import Sizes, Told
from .stores import Postgresql, Sqlite, Store

STORES: Final = (Sqlite.name, Postgresql.name)
STREAM: Final = "accounts-a"
BAR, RIVAL_BAR = 0.6, 10.0
_WHAT: Final = "fold, events/s"
S = TypeVar("S")


@event("account.opened", version=1)
class Opened:
    number: str
    owner: str


@event("account.deposited", version=1)
class Deposited:
    cents: int
    memo: str


@event("account.withdrawn", version=1)
class Withdrawn:
    cents: int
    memo: str
    teller: str


@event("account.moved", version=1)
class Moved:
    owner: str
    street: str
    town: str
    country: str


@event("account.flagged", version=1)
class Flagged:
    reason: str
    score: float


class Account(Aggregate):
    number: str = ""
    owner: str = ""
    town: str = ""
    cents: int = 0
    flags: int = 0

    @applies(Opened)
    def _(self, opened: Opened) -> Account:
        return self.evolve(number=opened.number, owner=opened.owner)

    @applies(Deposited)
    def _(self, deposited: Deposited) -> Account:
        return self.evolve(cents=self.cents + deposited.cents)

    @applies(Withdrawn)
    def _(self, withdrawn: Withdrawn) -> Account:
        return self.evolve(cents=self.cents - withdrawn.cents)

    @applies(Moved)
    def _(self, moved: Moved) -> Account:
        return self.evolve(owner=moved.owner, town=moved.town)

    @applies(Flagged)
    def _(self, flagged: Flagged) -> Account:
        return self.evolve(flags=self.flags + 1)


@agent("accounts", state=Account)
async def accounts(ctx: ActivationContext[Account]) -> Complete:
    return Complete()


def history(events: int) -> list[object]:
    """The same changes for everybody who folds them."""
    found: list[object] = [Opened("DE02-1203-0000-0000-2020-51", "Ada Lovelace")]
    for number in range(1, events):
        if number % 50 == 0:
            found.append(Moved("Ada Lovelace", f"{number} Analytical Row", "London", "GB"))
        elif number % 25 == 0:
            found.append(Flagged("many small withdrawals", number / 7))
        elif number % 3 == 0:
            found.append(Withdrawn(100 + number, "cash", f"teller {number % 9}"))
        else:
            found.append(Deposited(200 + number, f"invoice {number}"))
    return found


def record(log: EventLog, codec: Codec, events: list[object]) -> None:
    """Append them to the stream in one commit."""
    log.append(STREAM, [codec.stage(each, event_id=number.to_bytes(16, "big")) for number, each in enumerate(events, 1)], NO_STREAM)


def lines(store: Store, sizes: Sizes, told: Told) -> list[Line]:
    """The rows of this bar."""
    events, url = history(sizes.events), store.log("p2-accounts")
    app = App([accounts])
    folding = app.definitions["accounts"]
    log = open_log(url)
    record(log, app.codec, events)
    told("writing the aggregate of eventsourcing")
    account = eventsourcing_get.Prepared(store.place("p2-eventsourcing"), events)
    tables = bare(url)
    fetch = tables.stream(STREAM)

    def rate(once: Callable[[], Account]) -> Callable[[int], float]:
        def measure(turn: int) -> float:
            seconds = min(_seconds(once, expected) for _ in range(3))
            return len(events) / seconds

        return measure

    def ours() -> Account:
        folder = Folder(folding)
        state = folder.empty(STREAM)
        for rows in log.rows(STREAM):
            folder.fold(state, rows)
        folded: Account = state.state
        return folded

    expected = ours()
    contenders = {
        "ours": rate(ours),
        "bound": rate(lambda: Account(**vars(fold(fetch(), app.codec, Plain(), IN_PLACE)))),
        "appliers": rate(lambda: fold(fetch(), app.codec, Account(), Account.__appliers__)),
        "eventsourcing": lambda turn: len(events) / _seconds(lambda: account.get().cents, expected.cents),
    }
    best = in_turns(contenders, sizes.rounds, told)
    account.close()
    tables.close()
    log.close()

    def line(against: str, name: str, bar: float | None) -> Line:
        return Line("P2", store.name, _WHAT, against, f"{best['ours']:,.0f}", f"{best[name]:,.0f}", best["ours"] / best[name], bar)

    return [
        line("a bare loop", "bound", BAR),
        line("the same, our appliers", "appliers", None),
        line("eventsourcing", "eventsourcing", RIVAL_BAR),
    ]


class Plain:
    """What the bare loop changes in place: the account of somebody who needs no product."""

    def __init__(self) -> None:
        self.number, self.owner, self.town, self.cents, self.flags = "", "", "", 0, 0


def _open(state: Plain, opened: Opened) -> Plain:
    state.number, state.owner = opened.number, opened.owner
    return state


def _deposit(state: Plain, deposited: Deposited) -> Plain:
    state.cents += deposited.cents
    return state


def _withdraw(state: Plain, withdrawn: Withdrawn) -> Plain:
    state.cents -= withdrawn.cents
    return state


def _move(state: Plain, moved: Moved) -> Plain:
    state.owner, state.town = moved.owner, moved.town
    return state


def _flag(state: Plain, flagged: Flagged) -> Plain:
    state.flags += 1
    return state


IN_PLACE: Final[dict[type, Callable[[Any, Any], Any]]] = {Opened: _open, Deposited: _deposit, Withdrawn: _withdraw, Moved: _move, Flagged: _flag}


def fold(rows: Iterable[Sequence[Any]], codec: Codec, state: S, appliers: Mapping[type, Callable[[Any, Any], Any]]) -> S:
    """The bound: one loop."""
    names = {kind: kind.__event_type__ for kind in appliers}  # type: ignore[attr-defined]
    table = {name: (codec.decoder(name, 1), appliers[kind]) for kind, name in names.items()}
    for _, kind, _, content, _, _ in rows:
        decode, apply = table[kind]
        state = apply(state, decode(content))
    return state


def _seconds(once: Callable[[], object], expected: object) -> float:
    gc.collect()
    began = time.perf_counter()
    found = once()
    seconds = time.perf_counter() - began
    if found != expected:
        raise RuntimeError(f"the fold gave {found!r:.200}, expected {expected!r:.200}")
    return seconds
