"""Streams of aggregates that agents load and emit to: folded by the app's class, looked into, and compared (S-8.1, S-9.1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from intentlog.agents import App
from intentlog.eventlog.log import Snapshot
from intentlog.eventlog.opening import open_log
from intentlog.replay import Kind, StateCheck, Verdict, replay_all, state_at
from intentlog.replay.aggregates import snapshot_of
from intentlog.replay.verify import verify_all
from tests.replay.test_code import eventlog

WALLET = """
from intentlog.agents import Aggregate, App, agent, applies
from intentlog.eventlog import event

@event("paid.in")
class PaidIn:
    cents: int

class Wallet(Aggregate, category="wallets"):
    cents: int = 0
    currency: str = "EUR"

    @applies(PaidIn)
    def _(self, paid: PaidIn) -> "Wallet":
        return self.evolve(cents=self.cents + paid.cents)

class Till(Aggregate):
    seen: int = 0

@agent("tills", state=Till)
async def tills(ctx, cents: int):
    wallet = await ctx.load(Wallet, "w1")
    wallet.emit(PaidIn(cents))
    return cents

app = App(agents=[tills])
"""
STREAM = "wallets-w1"
APP = ("--app", "wallet:app")


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    (tmp_path / "wallet.py").write_text(WALLET)
    run = ("run", "wallet:app", "--until-idle")
    for command in (("init",), ("send", "tills", "a", "300"), run, ("send", "tills", "b", "100"), run):  # one after the other
        assert 0 == eventlog(tmp_path, *command, apart=True)[0], command
    return tmp_path


def loaded(text: str) -> App:
    scope: dict[str, Any] = {"__name__": "wallet_here"}
    exec(text, scope)
    made: App = scope["app"]
    return made


@pytest.mark.parametrize(
    "old, new, field",
    [
        ("self.cents + paid.cents", "self.cents + 2 * paid.cents", "state.cents"),
        ('"EUR"', '"USD"', "state.currency"),
        ("cents: int = 0\n    cur", "cents: int = 1\n    cur", "state.cents"),
    ],
)
def test_a_changed_applier_or_default_of_an_aggregate_is_caught_with_against(paid, old, new, field):
    assert 0 == eventlog(paid, "replay", "--all", *APP, "--against", ".", apart=True)[0]
    (paid / "old").mkdir()
    (paid / "old" / "wallet.py").write_text(WALLET)
    assert old in WALLET
    (paid / "wallet.py").write_text(WALLET.replace(old, new))
    code, out, _ = eventlog(paid, "replay", "--all", *APP, "--against", "old", apart=True)
    assert (1, True, True) == (code, f"{STREAM}  diverged at version 0" in out, field in out)


def test_what_a_worker_or_a_bundle_kept_of_an_aggregate_is_compared_field_by_field(paid):
    log, app = open_log(f"sqlite:///{paid}/eventlog.db"), loaded(WALLET)
    rows = [row for chunk in log.rows(STREAM) for row in chunk]
    kept = snapshot_of(app, STREAM, rows[:1])
    assert kept is not None
    log.snapshots.save(STREAM, kept)
    same = next(replay_all(log, app, [STREAM]))
    assert (Verdict.SAME, StateCheck.COMPARED, 2, 0) == (same.verdict, same.state, same.events, same.turns)
    other = next(replay_all(log, loaded(WALLET.replace("self.cents + paid", "7 + paid")), [STREAM]))
    found = other.divergence
    assert found is not None
    assert (Verdict.DIVERGED, Kind.STATE, 0, "300", "307") == (other.verdict, found.kind, found.version, found.recorded, found.decided)
    log.close()
    assert 0 == eventlog(paid, "bundle", STREAM, "-o", "week.bundle", *APP, apart=True)[0]
    (paid / "wallet.py").write_text(WALLET.replace('"EUR"', '"USD"'))
    code, out, _ = eventlog(paid, "replay", "--bundle", "week.bundle", *APP, apart=True)
    assert (1, True) == (code, "state.currency" in out)


def test_an_aggregate_can_be_looked_into_like_the_state_of_an_agent(paid):
    assert 400 == state_at(open_log(f"sqlite:///{paid}/eventlog.db"), loaded(WALLET), STREAM).state.cents
    for words, code, said in (
        (("state", STREAM), 0, "400"),
        (("why", STREAM, "cents"), 0, "400"),
        (("diff", STREAM, "0", "now"), 1, "400"),
        (("bisect", STREAM, "st.cents > 300"), 1, "holds after version 1"),
        (("show", STREAM), 0, "PaidIn"),
        (("replay", STREAM), 0, "1 stream: 1 same"),
        (("replay", "--category", "wallets"), 0, "1 stream: 1 same"),
        (("state", "tills-a"), 0, "seen"),
    ):
        assert (code, True) == ((found := eventlog(paid, *words, *APP, apart=True))[0], said in found[1]), (words, found)


def test_of_a_stream_that_lacks_a_version_an_agent_that_loads_it_can_decide_nothing_again(paid):
    import sqlite3

    with sqlite3.connect(paid / "eventlog.db") as file:
        file.execute("DELETE FROM events WHERE version = 0 AND stream_id = (SELECT id FROM streams WHERE name = ?)", [STREAM])
    file.close()
    log = open_log(f"sqlite:///{paid}/eventlog.db")
    found = {each.stream: each for each in replay_all(log, loaded(WALLET))}
    assert {STREAM, "tills-a", "tills-b"} == set(found)
    assert "wallets-w1 version 0 is missing" in found[STREAM].reason
    verdicts = sorted(each.verdict.value for each in found.values())
    assert ["cannot", "cannot", "same"] == verdicts  # the turn that loaded it while it was empty saw nothing of it


def test_an_aggregate_has_no_inputs_to_leave_out_and_is_told_what_tells_more(paid):
    code, out, said = eventlog(paid, "bisect", STREAM, "st.cents > 300", "--minimize", *APP, apart=True)
    assert (3, "") == (code, out)
    assert f"{STREAM} has no inputs to leave out" in said and f"eventlog trace {STREAM}@1" in said
    assert 0 == eventlog(paid, "trace", f"{STREAM}@1", apart=True)[0]


def test_an_aggregates_snapshot_is_verified_like_an_agents(paid):
    app = loaded(WALLET)
    log = open_log(f"sqlite:///{paid}/eventlog.db")

    def told(kept: Snapshot) -> tuple[list[str], str]:
        log.snapshots.delete(STREAM)
        log.snapshots.save(STREAM, kept)
        (report,) = verify_all(log, app, [STREAM])
        return [each.text for each in report.faults.values()], report.snapshot_ignored

    kept = snapshot_of(app, STREAM, [row for rows in log.rows(STREAM) for row in rows])
    assert kept is not None
    assert ([], "") == told(kept)
    assert ([], "it was made by other folding code") == told(attrs.evolve(kept, fingerprint="other"))
    assert (["the snapshot at version 1 cannot be read"], "") == told(attrs.evolve(kept, data=b"x"))
    assert (["at state.cents the fold has 300, the snapshot 400"], "") == told(attrs.evolve(kept, version=0))
    assert (["the snapshot is at version 7, but the stream ends at 1"], "") == told(attrs.evolve(kept, version=7))
    log.close()


def test_what_a_turn_emitted_to_an_aggregate_stands_below_it_in_a_trace(paid):
    code, out, _ = eventlog(paid, "trace", f"{STREAM}@1", "--json", *APP, apart=True)
    rows = [json.loads(line) for line in out.splitlines()]
    assert 0 == code
    assert {"tills-b", STREAM} == {row["stream"] for row in rows}
    (found,) = (row for row in rows if row["stream"] == STREAM)
    assert (1, "paid.in") == (found["version"], found["type"])


def test_why_goes_on_in_the_stream_of_the_turn_that_paid_in(paid):
    code, out, err = eventlog(paid, "why", STREAM, "cents", *APP)
    lines = out.splitlines()
    assert (0, "", "because of, in tills-b") == (code, err, next(line for line in lines if line.startswith("because"))), out
    below = [line.split()[1:3] for line in lines[lines.index("because of, in tills-b") + 1 : lines.index("before that")]]
    assert [["2", "AggregateSaved"], ["0", "InputReceived"]] == below
    causes = json.loads(eventlog(paid, "why", STREAM, "cents", "--json", *APP)[1])["causes"]
    assert [("tills-b", "aggregate.saved", "the turn that emitted it")] == [(each["stream"], each["type"], each["role"]) for each in causes[:1]]
    assert [("tills-b", 100)] == [(each["stream"], each["fields"]["payload"]) for each in causes[-1:]]
    own = json.loads(eventlog(paid, "why", "tills-b", "run.completed", "--json", *APP)[1])["causes"]
    assert {"tills-b"} == {each["stream"] for each in own}


def test_why_has_no_cause_where_the_turns_stream_is_not_at_hand(paid):
    assert 0 == eventlog(paid, "bundle", STREAM, "-o", "wallet.bundle", *APP)[0]
    code, out, err = eventlog(paid, "why", STREAM, "cents", "--log", "wallet.bundle", *APP)
    assert (0, "", False) == (code, err, "because" in out), out


def test_why_finds_the_turn_in_a_log_in_which_its_append_was_taken_apart(paid):
    assert 0 == eventlog(paid, "fork", "tills-b", "--to", "sqlite:///copy.db", *APP)[0]
    assert "because of, in tills-b" in eventlog(paid, "why", STREAM, "cents", "--log", "sqlite:///copy.db", *APP)[1]
