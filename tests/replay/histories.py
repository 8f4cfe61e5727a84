"""Random histories for property tests: what happens in a world, as a list that Hypothesis can shrink."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.replay.world import RefundAsked, World

KEYS = ("acct-42", "acct-43")

moves = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from(KEYS), st.integers(0, 3), st.integers(1, 500)),
        st.tuples(st.just("run"), st.booleans(), st.booleans()),
        st.tuples(st.just("tick"), st.sampled_from([1, 61, 400])),
    ),
    min_size=1,
    max_size=6,
)
"""Inputs for two keys, runs of worker or effector or both, and time that passes."""


def played(app: Any, happened: list[Any]) -> World:
    """A world in which ``happened`` has happened; close its log."""
    world = World()
    world.send(app, RefundAsked("o-0", 1))
    for kind, *given in happened:
        if kind == "send":
            key, order, cents = given
            world.send(app, RefundAsked(f"o-{order}", cents), key=key)
        elif kind == "tick":
            world.clock.tick(given[0])
        else:
            worker, effector = given
            world.run(app, worker=worker or not effector, effector=effector)
    return world
