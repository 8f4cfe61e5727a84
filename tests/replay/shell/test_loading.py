"""Code from a file folds while one steps; loaded again after each edit, and registered nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from intentlog.eventlog.console import COULD_NOT, USAGE
from intentlog.replay.shell.projected import Projected
from tests.replay.world import STREAM, Account

AGGREGATE = """
from intentlog.agents import Aggregate, applies
from tests.replay.world import RefundAsked, RefundPaid

class Account(Aggregate):
    refunded_cents: int = 0
    orders: frozenset[str] = frozenset()

    @applies(RefundAsked)
    def _(self, e: RefundAsked) -> "Account":
        return self.evolve(orders=self.orders | {{e.order_id}})

    @applies(RefundPaid)
    def _(self, e: RefundPaid) -> "Account":
        return self.evolve(refunded_cents=self.refunded_cents + {cents})
"""
OWN_EVENTS = """
from __future__ import annotations
from intentlog.agents import Aggregate, applies
from intentlog.eventlog import event

@event("refund.asked")
class RefundAsked:
    order_id: str
    cents: int

class Account(Aggregate):
    asked: tuple[RefundAsked, ...] = ()

    @applies(RefundAsked)
    def _(self, e: RefundAsked) -> Account:
        return self.evolve(asked=(*self.asked, e))
"""
APP = """
from tests.replay.world import app_of, paying
app = app_of(paying)
"""
PROJECTION = """
from intentlog.eventlog.projections import Projection

def handle(view, stored, event):
    held = int(view.get("cents") or b"0")
    view.put("cents", str(held + event.cents {more}).encode())
    view.put(event.order_id, b"asked")

sums = Projection("sums", handle, types=("refund.asked",))
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("account.py")
    path.write_text(AGGREGATE.format(cents="e.cents"))
    return path


def test_an_aggregate_folds_instead_and_the_difference_is_shown(session, tell, file):
    assert "account.py:Account folds now\nnothing differs at version 21\n" == tell("load account.py")
    file.write_text(AGGREGATE.format(cents="1"))
    assert "  ~ refunded_cents  4207 → 2\n" == tell("reload").split("now\n")[1]
    assert (21, 2) == (session.at, session.walk.state.state.refunded_cents)


def test_one_steps_on_with_the_loaded_code(session, tell, file):
    file.write_text(AGGREGATE.format(cents="1"))
    tell(f"load {file}:Account")
    tell("goto start")
    assert "        ~ refunded_cents  0 → 1\n" in tell("until st.refunded_cents")
    tell("unload")
    assert (9, 4200) == (session.at, session.walk.state.state.refunded_cents)


def test_the_apps_own_class_is_what_it_was(session, tell, file):
    file.write_text(AGGREGATE.format(cents="1"))
    for _ in range(3):
        tell(f"load {file}")
    tell("unload")
    assert (Account, 4207) == (type(session.walk.state.state), session.walk.state.state.refunded_cents)
    assert "versions 18 to 21: same as recorded" in tell("run")


def test_events_of_the_file_come_before_the_apps(session, tell, tmp_path):
    (tmp_path / "own.py").write_text(OWN_EVENTS)
    for _ in range(2):
        tell(f"load {tmp_path / 'own.py'}")
    assert "(RefundAsked(order_id='o-1', cents=4200), RefundAsked(order_id='o-2', cents=7))\n" == tell("st asked")
    assert "o-1\n" == tell("st.asked[0].order_id").replace("'", "")


def test_a_whole_app_is_loaded_and_its_turns_run(session, tell, tmp_path):
    (tmp_path / "refunds.py").write_text(APP)
    tell(f"load {tmp_path / 'refunds.py'}")
    assert "same as recorded" in tell("run")


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("class Account(:", COULD_NOT, "account.py:1: SyntaxError"),
        ("\n\nraise ValueError('no')", COULD_NOT, "account.py:3: ValueError: no"),
        ("import nowhere_to_be_found", COULD_NOT, "No module named 'nowhere_to_be_found'"),
        ("x = 3", USAGE, "account.py:Account is nothing of that name"),
        ("raise SystemExit", COULD_NOT, "SystemExit"),
    ],
)
def test_code_that_fails_leaves_the_former_in_force(session, tell, file, text, code, says):
    tell(f"load {file}")
    file.write_text(text)
    said = tell("reload")
    assert (code, True, True) == (session.do("reload").code, says in " ".join(said.split()), "Traceback" not in said)
    assert 4207 == session.walk.state.state.refunded_cents


def test_code_that_cannot_fold_this_history_leaves_the_former_in_force(session, tell, file):
    file.write_text(AGGREGATE.format(cents="e.nothing"))
    assert "the applier of refund.paid raised AttributeError" in tell(f"load {file}")
    assert (21, None) == (session.at, session.loaded)
    assert 4207 == session.walk.state.state.refunded_cents


def test_a_file_that_is_not_there_and_a_name_that_is_not_in_it(session, tell, file):
    assert "cannot be read: No such file" in tell("load nowhere.py")
    assert "It has: Account." in tell(f"load {file}:Accounts").replace("\n", "")
    assert (USAGE, USAGE) == (session.do("reload").code, session.do("load a b").code)


def test_a_projection_is_seen_as_of_here_and_edited_while_stepping(session, tell, tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(PROJECTION.format(more=""))
    assert "  + view.cents  4207\n" in tell(f"load {path}")
    assert ["cents  4207", "o-1    'asked'", "o-2    'asked'"] == [line.strip() for line in tell("view").splitlines()]
    session.open(STREAM, 12)
    assert ["cents  4200"] == [line.strip() for line in tell("view cents").splitlines()]
    assert "        ~ view.cents  4200 → 4207\n" in tell("next 5")
    tell("back 5")
    path.write_text(PROJECTION.format(more="+ 1"))
    assert "4200 → 4201" in tell("reload")
    assert "b'4201'\n" == tell("view['cents']")


def test_a_projection_that_fails_says_where(session, tell, tmp_path):
    path = tmp_path / "sums.py"
    path.write_text(PROJECTION.format(more="// (event.cents - 7)"))
    tell(f"load {path}")
    assert "it stopped: version 14: ZeroDivisionError" in tell("view")


def test_a_projection_is_the_same_forth_and_back(session, tell, tmp_path, monkeypatch):
    monkeypatch.setattr("intentlog.replay.shell.projected._EVERY", 2)
    path = tmp_path / "sums.py"
    path.write_text(PROJECTION.format(more=""))
    tell(f"load {path}")
    projected = session.projected()
    there = [projected.at(version).rows for version in range(22)]
    back = [projected.at(version).rows for version in reversed(range(22))]
    fresh = [Projected(session.log, STREAM, session.loaded.projection, session.app.codec).at(version).rows for version in range(22)]
    assert there == fresh == back[::-1]


def test_a_class_that_cannot_fold_the_history_leaves_the_one_before_in_force(session, tell, file):
    file.write_text(AGGREGATE.format(cents="1"))
    tell("load account.py")
    file.write_text(AGGREGATE.format(cents="1 // 0"))
    said = tell("reload")
    assert "ZeroDivisionError" in said and "What folded before still does." in said.replace("\n", " ")
    assert 2 == session.walk.state.state.refunded_cents
