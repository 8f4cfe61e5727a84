"""Every benchmark runs, counts what it says it counts, and judges as documented. Times decide nothing here."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from benchmarks import long_log, measuring, p1_activations, p2_fold, p3_replay, p4_growth, p5_resume, p6_effector, p7_memory, p8_writers, ratios, stores, table
from benchmarks.__main__ import BARS, benched
from benchmarks.bare import bare
from benchmarks.measuring import Absent, ContenderFailed, Line, alone, in_turns, installed, together
from benchmarks.sizes import TINY
from benchmarks.stores import STORES, NotHere, Sqlite
from intentlog.eventlog import ANY, AppendRequest, NewEvent, StreamAppend, open_log
from tests.house.tree import python
from tests.services.postgres import NoPostgres

QUIET = print
MACHINE = {"cores": 2, "python": "3.11.0", "sqlite": "3.40.0", "system": "Linux", "fsync_ms": 0.5}


def row(ratio, bar=0.5, ceiling=False):
    return Line("P9", "paper", "speed", "light", "1/s", "2/s", ratio, bar, ceiling)


@pytest.fixture(scope="module", params=STORES)
def store(request, tmp_path_factory):
    """Each store as it is measured; where there is no PostgreSQL the test skips, and fails under ``CI=true``."""
    try:
        opened = STORES[request.param](tmp_path_factory.mktemp("bench"))
    except NotHere as reason:
        pytest.skip(str(reason))
    yield opened
    opened.close()


def written(url, but):
    """The raw rows of all events but some."""
    tables = bare(url)
    rows = tables.written(but=but)
    tables.close()
    return rows


def made_again(store, lines, begin, count, before):
    """The log on which the calls were made again holds the events of the one on which they were heard, and the row has no bar."""
    (line,) = (each for each in lines if each.what == p1_activations.CALLS)
    assert (None, True) == (line.bar, line.ratio is not None and line.ratio > 0)
    heard, again = (events(store.log(f"{begin}-{name}0"), before) for name in ("heard", "again"))
    assert count == len(heard)
    assert heard == again


def events(url, but):
    """All events but those of some types."""
    log = open_log(url)
    found = {(each.stream, each.version, each.event_id, each.data) for each in log.read_all() if each.type not in but}
    log.close()
    return found


def measured(bar, store):
    """The bar's rows; none where the store is not one of its own."""
    return bar.lines(store, TINY, QUIET) if store.name in bar.STORES else []


def test_activations_of_ours_and_the_bound_are_measured_on_the_same_rows(store):
    lines = p1_activations.lines(store, TINY, QUIET)
    assert 2 + len(p1_activations.RIVALS[store.name]) == len(lines)
    assert lines[0].ratio is not None
    assert lines[0].ratio > 0
    ours, bound = (written(store.log(f"p1-{name}0"), but=("input.received",)) for name in ("ours", "bound"))
    assert 3 * TINY.activations == len(ours)
    assert [row[1:] for row in ours] == [row[1:] for row in bound]  # all but the position
    made_again(store, lines, "p1", 3 * TINY.activations, ("input.received",))


def test_the_prompt_and_the_answer_are_of_the_documented_size(store):
    url = store.log("prompts")
    alone("p1_activations:ours", url=url, units=2)
    log = open_log(url)
    sizes = {event.type: len(event.data) for event in log.read_all()}
    log.close()
    assert {"input.received", "model_call.cached", "intent.staged", "activation.suspended"} == set(sizes)
    assert 1_200 < sizes["model_call.cached"] < 1_800


def test_every_fold_comes_to_the_same_account(store):
    lines = p2_fold.lines(store, TINY, QUIET)  # raises when one does not
    assert ["a bare loop", "the same, our appliers", "eventsourcing"] == [line.against for line in lines]
    assert all(line.ratio is not None and line.ratio > 0 for line in lines)


def test_code_is_run_again_over_streams_of_every_length(store):
    lines = measured(p3_replay, store)  # raises when one is not the same to its end
    assert ([f"{length:,} events" for length in TINY.replayed] if lines else []) == [line.what.partition(", ")[2] for line in lines[: len(TINY.replayed)]]
    assert [True] * len(lines) == [line.bar is not None for line in lines]
    assert all(line.ratio is not None and line.ratio > 0 for line in lines)


def test_a_key_is_weighed_at_every_age(store):
    found = p4_growth.ours(store.log("weighed"), list(TINY.ages), TINY.window)
    assert len(TINY.ages) == len(found["bytes"])
    assert 6 == found["events"]
    assert all(weight > 0 for weight in found["bytes"])
    lines = p4_growth.lines(store, TINY, QUIET)
    assert [True, True, False] == [line.bar is not None for line in lines]


def test_a_key_is_resumed_by_a_worker_that_knows_others_and_by_one_that_knows_none(store):
    lines = p5_resume.lines(store, TINY, QUIET)
    assert [True, True, False, False] == [line.bar is not None for line in lines]
    assert all(line.ratio is not None and line.ratio > 0 for line in lines)


def test_the_snapshot_of_the_long_key_is_used(store):
    url = store.log("keys")
    events = p5_resume.make(url, 60, TINY.long_log)
    log = open_log(url)
    found = log.snapshots.load([f"{long_log.AGENT}-{p5_resume.LONG}", f"{long_log.AGENT}-{p5_resume.SHORT}"])
    log.close()
    assert {f"{long_log.AGENT}-{p5_resume.LONG}": events[p5_resume.LONG] - 500} == {stream: snapshot.version for stream, snapshot in found.items()}


def test_a_long_log_is_a_true_history_and_is_read_to_its_end(store):
    lines = measured(p7_memory, store)  # raises when a replay is not the same or an event is left out
    assert (3 if store.name in p7_memory.STORES else 0) == len(lines)
    assert all(line.ratio is not None and 0 < line.ratio < 1 for line in lines)


def test_an_effector_settles_alone_and_among_others_and_the_bound_has_the_same_rows(store):
    lines = measured(p6_effector, store)  # raises when an intent was settled twice or not at all
    assert all(line.ratio is not None and line.ratio > 0 for line in lines)
    for line in lines[:1]:
        assert ("the raw bound", p6_effector.BAR) == (line.against, line.bar)
        ours, bound = (written(store.log(f"p6-{name}0"), but=p6_effector.BEFORE) for name in ("1-replicas", "bound"))
        assert 2 * TINY.intents == len(ours)
        assert [row[1:] for row in ours] == [row[1:] for row in bound]  # all but the position
        made_again(store, lines, "p6", 2 * TINY.intents, p6_effector.BEFORE)


def test_a_settlement_that_is_refused_is_counted_and_is_no_outcome():
    log = p6_effector.Noting(open_log("memory://"), "bench.done")
    requests = [AppendRequest((StreamAppend("a-1", (NewEvent(bytes(16), "bench.done", 1, text),), ANY),)) for text in (b"first", b"first", b"second")]
    for request in requests:
        log.append_batch([request])
    assert ({"a-1"}, 2) == (set(log.at), log.refused)


def test_writers_write_to_streams_of_their_own_and_all_at_once(store):
    lines = measured(p8_writers, store)
    assert all(line.ratio is not None and line.ratio > 0 for line in lines)
    assert [p8_writers.BAR, None][: len(lines)] == [line.bar for line in lines]


def test_a_bare_writer_leaves_a_history_without_gaps(store):
    url = store.log("bare-writer")
    open_log(url).close()
    (found,) = together([("p8_writers:bare_writer", {"url": url, "stream": "bench-one", "seconds": 0.02})])
    log = open_log(url)
    versions = [event.version for event in log.read("bench-one")]
    log.close()
    assert found["events"] > 0
    assert [*range(found["events"] + 1)] == versions


@pytest.mark.parametrize("name", BARS)
def test_the_module_says_what_its_bar_is_measured_against(name):
    said = BARS[name].__doc__ or ""
    assert said.startswith(f"{name}")
    assert "Measured:" in said
    assert set(BARS[name].STORES) <= {store.name for store in STORES.values()}


def test_the_command_prints_the_table_and_writes_it(tmp_path):
    done = python("-m", "benchmarks", "--tiny", "--only", "P2", "--store", "sqlite", "--json", tmp_path / "out.json", "--folder", tmp_path)
    assert "eventsourcing" in done.stdout
    written = json.loads((tmp_path / "out.json").read_text())
    assert {"machine", "lines"} == set(written)
    missed = any(line["verdict"].startswith("✗") for line in written["lines"])
    assert int(missed) == done.returncode, done.stdout


@pytest.mark.parametrize(
    ("line", "mark", "fails"),
    [
        (row(0.5), "✓", False),
        (row(0.49), "✗ missed", True),
        (row(0.9, ceiling=True), "✗ missed", True),
        (row(0.2, bar=None), "–", False),
        (Absent("some_rival").line("P9", "paper", "speed", "a rival", 3.0), "? not measured", False),
        (Line("P9", "paper", "speed", "", "", "", note="it broke", failed=True), "✗ failed", True),
    ],
)
def test_a_row_is_judged(line, mark, fails):
    verdict = table.judge(line, {})
    assert (mark, fails) == (verdict.mark, verdict.fails)


@pytest.mark.parametrize(
    ("ratio", "ceiling", "before", "fails"),
    [(0.75, False, 1.0, False), (0.74, False, 1.0, True), (0.4, True, 0.4, False), (0.5, True, 0.4, False), (0.51, True, 0.4, True)],
)
def test_more_than_a_quarter_worse_than_the_committed_ratio_fails(ratio, ceiling, before, fails):
    line = row(ratio, bar=0.6 if ceiling else 0.5, ceiling=ceiling)
    assert fails == table.judge(line, {line.key: before}).fails


def test_saved_ratios_come_back_and_leave_the_others_alone(tmp_path):
    path = tmp_path / "ratios.json"
    ratios.save([Line("P8", "paper", "size", "air", "", "", 2.0, 1.0)], path)
    ratios.save([row(0.61234), row(0.7, bar=None)], path)
    assert {"P8 paper, size / air": 2.0, "P9 paper, speed / light": 0.612} == ratios.load(path)


def test_every_bar_has_committed_ratios():
    committed = ratios.load()
    assert set(BARS) == {key.partition(" ")[0] for key in committed}
    assert all(ratio > 0 for ratio in committed.values())


def test_a_rival_that_is_not_installed_is_shown_with_the_way_out():
    screen = io.StringIO()
    table.show(Console(file=screen, width=130), MACHINE, [Absent("some_rival").line("P9", "paper", "speed", "a rival", 3.0)], {})
    assert "? not measured" in screen.getvalue()
    assert "some_rival is not installed: make bench installs it" in screen.getvalue()
    assert not installed("some_rival_that_nobody_wrote")


def test_a_store_that_is_not_there_is_shown_with_the_way_out(tmp_path, monkeypatch):
    def missing():
        raise NoPostgres("there is none here; install one")

    monkeypatch.setattr(stores, "PostgresServer", missing)
    (line,) = benched(("P8",), ("postgresql", "sqlite"), tmp_path, TINY, {})
    assert ("PostgreSQL", "there is none here; install one") == (line.store, line.note)
    assert ("? not measured", False) == (table.judge(line, {}).mark, table.judge(line, {}).fails)


def test_a_contender_that_breaks_says_why():
    with pytest.raises(ContenderFailed, match="No store understands"):
        alone("p4_growth:ours", url="nowhere://", ages=[1], window=1)


def test_contenders_that_run_together_start_together():
    first, second = together([("measuring:ready_at", {}), ("measuring:ready_at", {})])
    assert max(first["prepared"], second["prepared"]) <= min(first["went"], second["went"])


def test_one_that_breaks_among_several_says_why():
    with pytest.raises(ContenderFailed, match="No store understands"):
        together([("measuring:ready_at", {}), ("p4_growth:ours", {"url": "nowhere://", "ages": [1], "window": 1})])


def test_the_best_round_of_each_contender_counts():
    figures = {"a": [1.0, 3.0, 2.0], "b": [5.0, 4.0, 6.0]}
    assert {"a": 3.0, "b": 6.0} == in_turns({name: rounds.__getitem__ for name, rounds in figures.items()}, 3, QUIET)


def test_peak_memory_is_the_contenders_own(tmp_path):
    ballast = bytearray(200_000_000)
    found = alone("p1_activations:ours", url=Sqlite(tmp_path).log("a"), units=1)
    assert 15 < found["peak_mb"] < 150 < len(ballast) / 1e6 < measuring.peak_mb()
