"""How loading and saving other aggregates changes a ``RunState``; the part of ``evolve`` that belongs to ``others``.

What a turn loads is written down with the next thing that is written: the journal entry that may depend on it, the
turn's append, or its failure. Until the turn is committed it may be loaded again, because somebody changed it meanwhile
or because the turn failed and is retried. Then what was recorded behind it may have been asked in view of what is gone:
such answers are set aside. One that is asked for again with the same content is still there, and paid once; one that
is asked for differently is asked anew, and that is no drift.
"""

from __future__ import annotations

from . import facts
from .run import Activation, RunState


def loaded(run: RunState, fact: facts.AggregateLoaded, _: int) -> None:
    """See ``facts.AggregateLoaded``."""
    activation = run.turning(fact.seq, "aggregate.loaded")
    if fact.step in activation.loads:
        set_aside(activation, fact.step, fact.index)
    activation.loads[fact.step] = fact
    activation.kinds[fact.step] = "load"


def saved(run: RunState, fact: facts.AggregateSaved, _: int) -> None:
    """See ``facts.AggregateSaved``."""
    run.turning(fact.seq, "aggregate.saved").saves.append(fact)


def set_aside(activation: Activation, step: int, index: int) -> None:
    """Set aside what the turn under way recorded behind the load at ``step``, where ``index`` reads had been taken."""
    for place in [place for place in activation.models if place > step]:
        activation.stale[place] = activation.models.pop(place)
        del activation.kinds[place]
    for place in [place for place in activation.tools if place >= index]:
        read = activation.tools.pop(place)
        if read.failure is None:
            activation.stale_reads[place] = read
    for place in [place for place in (*activation.loads, *activation.refusals) if place > step]:
        activation.loads.pop(place, None)
        activation.refusals.pop(place, None)
        activation.kinds.pop(place, None)


def forget_loads(activation: Activation) -> None:
    """The turn under way will be run again and is to see the aggregates as they are then."""
    first = min((step for step in activation.loads if step >= activation.step), default=None)
    if first is not None:
        fact = activation.loads.pop(first)
        activation.kinds.pop(first, None)
        set_aside(activation, first, fact.index)


def turn_committed(activation: Activation) -> None:
    """Explicit code is not run again over what it has behind it; linear code is, from its start, and finds all of it."""
    if not activation.is_linear:
        for held in (activation.loads, activation.saves, activation.stale, activation.stale_reads):
            held.clear()
