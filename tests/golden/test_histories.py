"""Every history that an example has ever written replays the same, and is sound, with today's code."""

from __future__ import annotations

import pytest

from intentlog.replay import Verdict, replay_all, replay_stream
from intentlog.replay.bundles import open_bundle
from intentlog.replay.forking.edits import Edits
from intentlog.replay.forking.going_on import Why, what_if
from intentlog.replay.forking.pieces import JOURNAL, append_around, is_told
from intentlog.replay.verify import verify_all
from tests.golden import histories

RECORDED = histories.recorded()


@pytest.mark.parametrize(("example", "path"), RECORDED, ids=lambda value: getattr(value, "stem", ""))
def test_a_golden_history_replays_the_same(example, path):
    app, bundle = histories.app_of(example), open_bundle(path)
    verdicts = {replayed.stream: (replayed.verdict, replayed.divergence, replayed.reason) for replayed in replay_all(bundle, app)}
    assert dict.fromkeys(bundle.streams(), (Verdict.SAME, None, "")) == verdicts
    assert [] == [report.faults for report in verify_all(bundle, app) if not report.sound]


def test_every_example_has_a_history_and_all_of_them_are_small():
    assert set(histories.EXAMPLES) == {example for example, _ in RECORDED}
    assert 100_000 > sum(path.stat().st_size for _, path in RECORDED)
    folders = {path.name for path in (histories.FOLDER.parents[2] / "examples").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(histories.EXAMPLES)


@pytest.mark.parametrize(("example", "path"), RECORDED, ids=lambda value: getattr(value, "stem", ""))
def test_a_golden_history_can_be_forked_anywhere(example, path):
    app, bundle = histories.app_of(example), open_bundle(path)
    for stream in bundle.streams():
        events = list(bundle.read(stream))
        for at in range(len(events)):
            if at != append_around(app.codec, events, at)[1]:
                continue
            fork = what_if(bundle, app, stream, at)
            assert (False, Verdict.SAME) == (fork.differs, replay_stream(fork.log, app, stream).verdict), (stream, at, fork.stop)
        told = [event.version for event in events if event.type in JOURNAL or is_told(app.codec, event.type, event.schema, event.data)]
        for version in told[1:]:
            fork = what_if(bundle, app, stream, None, Edits(drops=(version,)))
            found = replay_stream(fork.log, app, stream)
            assert (Verdict.SAME, True) == (found.verdict, fork.stop.why not in (Why.LEFT, Why.IMPOSSIBLE)), (stream, version, fork.stop, found)
