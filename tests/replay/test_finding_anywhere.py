"""Walk, why and bisect say the same on every store, and of a bundle of it."""

from __future__ import annotations

from pathlib import Path

from intentlog.eventlog.log import EventLog
from intentlog.eventlog.opening import open_log
from intentlog.replay.bisect import bisect
from intentlog.replay.bundles.opening import open_bundle
from intentlog.replay.bundles.writing import write_bundle
from intentlog.replay.differing import differing
from intentlog.replay.expressions import parse_expression
from intentlog.replay.minimizing import minimize
from intentlog.replay.paths import parse_path
from intentlog.replay.walking import Walk
from intentlog.replay.why import why
from tests.replay.long_history import record_long
from tests.replay.world import STREAM, app_of, paying

APP = app_of(paying)


def answers(log: EventLog) -> list[object]:
    found = why(log, APP, STREAM, parse_path("refunded_cents"), most=3)
    begun = bisect(log, APP, STREAM, parse_expression("st.refunded_cents > 100"))
    walk = Walk(log, APP, STREAM, memory=10_000, spacing=16)
    walk.goto(77)
    walk.back(40)
    smallest = minimize(walk, parse_expression("'o-7' in st.orders"), bisect(log, APP, STREAM, parse_expression("'o-7' in st.orders")))
    return [
        [(touch.version, touch.before, touch.after) for touch in found.changes],
        [(cause.version, cause.type, cause.role) for cause in found.causes],
        (begun.version, begun.changes),
        (walk.version, walk.state.state, walk.event().stored.event_id),
        [each.input_id for each in smallest.kept],
        [(change.kind, change.path) for change in differing(log, APP, STREAM, 20, 90).changes],
    ]


def test_the_answers_are_the_same_on_every_store_and_of_a_bundle(log_url, tmp_path: Path):
    log = open_log(log_url)
    record_long(log, APP, 200)
    write_bundle(log, [STREAM], tmp_path / "case.bundle")
    bundle, memory = open_bundle(tmp_path / "case.bundle"), open_log("memory://")
    record_long(memory, APP, 200)
    expected = answers(memory)
    assert expected == answers(log)
    assert expected == answers(bundle)
    for each in (log, bundle, memory):
        each.close()
