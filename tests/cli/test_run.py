"""run and worker: what they take in, show, sum up, and how they end."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import pytest

from intentlog.effector.summary import Summary
from intentlog.eventlog.errors import LogUnavailable
from tests.acceptance.forking import PROGRAM
from tests.cli.conftest import SHOP, begin, call, child, eventually


def orders(path: Path, count: int, mood: str = "", first: int = 0) -> Path:
    lines = [
        json.dumps({"agent": "orders", "key": f"k{n}", "type": "order.placed", "payload": {"order_id": f"o{n}", "mood": mood}, "id": f"i{n}"})
        for n in range(first, first + count)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def ledger() -> list[str]:
    return [line.split()[1] for line in Path("ledger.txt").read_text().splitlines()] if Path("ledger.txt").exists() else []


def test_a_file_of_inputs_is_handled_and_a_second_run_adds_no_event(shop):
    (shop / "eventlog.db").unlink()
    orders(shop / "in.jsonl", 20)
    first = child("run", "shop:app", "--input", "in.jsonl", "--until-idle", "--json")
    assert 0 == first.returncode, first.stderr
    summary = json.loads(first.stdout)
    assert (20, 0, 0, 40, {"OK": 20}, 0, 0) == tuple(
        summary[each] for each in ("accepted", "duplicates", "refused", "turns", "settled", "parked", "model_calls")
    )
    events = call("tail", "--json", "-n", "10000").stdout
    second = child("run", "shop:app", "--input", "in.jsonl", "--until-idle", "--json")
    assert (0, 20, {}) == (second.returncode, json.loads(second.stdout)["duplicates"], json.loads(second.stdout)["settled"])
    assert events == call("tail", "--json", "-n", "10000").stdout
    assert [f"o{n}" for n in range(20)] == sorted(ledger(), key=lambda each: int(each[1:]))


def test_the_summary_is_a_table_for_people(shop):
    orders(shop / "in.jsonl", 3)
    done = child("run", "shop:app", "--input", "in.jsonl", "--until-idle")
    rows = {line[:15].strip(): line[15:].strip() for line in done.stdout.splitlines()}
    assert ("3 accepted", "3 OK", "0") == (rows["inputs"], rows["intents settled"], rows["model calls"])


@pytest.mark.usefixtures("elsewhere")
def test_bad_lines_are_told_counted_and_make_the_exit_code_3(shop):
    path = orders(shop / "in.jsonl", 2)
    path.write_text("nonsense\n" + path.read_text() + '{"agent": "nobody", "key": "k", "payload": 1, "id": "x"}\n')
    done = child("run", "shop:app", "--input", "in.jsonl", "--until-idle", "--json")
    assert (3, 2, 2) == (done.returncode, json.loads(done.stdout)["accepted"], json.loads(done.stdout)["refused"])
    assert "in.jsonl:1: not JSON" in done.stderr and "in.jsonl:4: This app has no agent 'nobody'" in done.stderr
    assert ["o0", "o1"] == sorted(ledger())


@pytest.mark.usefixtures("elsewhere")
def test_an_id_used_for_something_else_is_refused_and_the_rest_goes_on(shop):
    call("send", "orders", "k0", "order.placed", '{"order_id": "other"}', "--id", "i0", "--app", "shop:app")
    orders(shop / "in.jsonl", 2)
    done = child("run", "shop:app", "--input", "in.jsonl", "--until-idle", "--json")
    assert (3, 1, 1, True) == (done.returncode, json.loads(done.stdout)["accepted"], json.loads(done.stdout)["refused"], "another payload" in done.stderr)


@pytest.mark.usefixtures("elsewhere")
def test_inputs_that_fail_are_counted_as_dead_letters(shop):
    orders(shop / "in.jsonl", 2, "angry")
    done = child("run", "shop:app", "--input", "in.jsonl", "--until-idle", "--json")
    while json.loads(done.stdout)["next_due"]:
        done = child("run", "shop:app", "--until-idle", "--json")
    assert 2 == len(call("dead-letters", "list", "--json").stdout.splitlines())


def test_a_run_that_parks_an_input_ends_with_0_and_says_so(shop):
    (shop / "sour.py").write_text(SHOP.replace("max_attempts=2", "max_attempts=1"))
    orders(shop / "in.jsonl", 2, "angry")
    told = child("run", "sour:app", "--input", "in.jsonl", "--until-idle", "--json")
    assert (0, 2) == (told.returncode, json.loads(told.stdout)["dead_letters"])
    (shop / "eventlog.db").unlink()
    assert "dead letters     2 new: eventlog dead-letters list" in child("run", "sour:app", "--input", "in.jsonl", "--until-idle").stdout


@pytest.mark.parametrize(
    "words", [("run", "shop:app", "--input", "nowhere.jsonl"), ("run", "shop:app", "--concurrency", "0"), ("run",), ("run", "shop:app", "--lease-ms", "1")]
)
def test_a_slip_is_told_before_anything_is_done(shop, words):
    done = call("run", *words)
    assert (2, "") == (done.exit_code, done.stdout)


def test_run_makes_the_log_and_worker_does_not(shop):
    (shop / "eventlog.db").unlink()
    assert (3, False) == (child("worker", "shop:app", "--until-idle").returncode, (shop / "eventlog.db").exists())
    assert (0, True) == (child("run", "shop:app", "--until-idle").returncode, (shop / "eventlog.db").exists())


@pytest.mark.usefixtures("elsewhere")
def test_a_worker_stages_effects_and_carries_none_out(shop):
    call("send", "orders", "k", "order.placed", '{"order_id": "o"}')
    done = child("worker", "--app", "shop:app", "--until-idle")
    assert (0, []) == (done.returncode, ledger())
    assert "suspended" in call("streams").stdout
    assert 0 == child("run", "--until-idle", EVENTLOG_APP="shop:app").returncode
    assert ["o"] == ledger()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_first_signal_stops_in_an_orderly_way(shop, number, code):
    call("send", "orders", "k", "order.placed", '{"order_id": "o", "mood": "brief"}')
    with begin("run", "shop:app", "--json") as running:
        eventually(lambda: ledger() == ["o"])
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
    assert (code, {"OK": 1}) == (running.returncode, json.loads(out)["settled"]), err
    assert "serving shop:app" in err and "once more stops at once" in err and "Traceback" not in err


def test_the_second_signal_stops_at_once_and_nothing_is_lost(shop):
    call("send", "orders", "k", "order.placed", '{"order_id": "o", "mood": "slow"}')
    with begin("run", "shop:app", "--json") as running:
        eventually(lambda: ledger() == ["o"])
        running.send_signal(signal.SIGTERM)
        assert running.stderr is not None
        while "once more" not in running.stderr.readline():
            pass
        running.send_signal(signal.SIGTERM)
        assert 128 + signal.SIGTERM == running.wait(3)
    child("run", "shop:app", "--until-idle")
    assert (["o", "o"], True) == (ledger(), '"completed"' in call("streams", "--json").stdout)


def test_a_run_that_was_to_end_by_itself_and_is_stopped_has_not_done_it(shop):
    call("send", "orders", "k", "order.placed", '{"order_id": "o", "mood": "brief"}')
    with begin("run", "shop:app", "--until-idle") as running:
        eventually(lambda: ledger() == ["o"])
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)
    assert 3 == running.returncode


@pytest.mark.usefixtures("elsewhere")
def test_what_others_append_meanwhile_is_served(shop):
    with begin("run", "shop:app") as running:
        assert running.stderr is not None
        assert "serving" in running.stderr.readline()
        call("send", "orders", "late", "order.placed", '{"order_id": "late"}')
        eventually(lambda: ledger() == ["late"])
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=30)


def test_a_log_in_memory_serves_one_run(shop):
    orders(shop / "in.jsonl", 3)
    done = child("run", "shop:app", "--log", "memory://", "--input", "in.jsonl", "--until-idle", "--json")
    assert (0, {"OK": 3}) == (done.returncode, json.loads(done.stdout)["settled"]), done.stderr


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(shop):
    orders(shop / "in.jsonl", 300)
    reader, writer = pty.openpty()
    words = [*PROGRAM, "run", "shop:app", "--input", "in.jsonl", "--until-idle"]
    with subprocess.Popen(words, stdin=writer, stdout=subprocess.PIPE, stderr=writer, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}) as running:
        os.close(writer)
        seen = b""
        while select.select([reader], [], [], 30)[0]:
            try:
                chunk = os.read(reader, 65536)
            except OSError:  # Linux: the other side is closed
                break
            seen += chunk
        os.close(reader)
        assert running.stdout is not None
        table = running.stdout.read().decode()
    assert b"in flight" in seen and b"100%" in seen
    assert "300 accepted" in table and "\x1b" not in table


def test_a_log_that_is_away_for_a_moment_when_all_is_done_does_not_fail_the_run(shop, monkeypatch):
    sum_up, tries = Summary.of, []

    def away_at_first(*arguments):
        tries.append(arguments)
        if len(tries) < 3:
            raise LogUnavailable("it is starting up")
        return sum_up(*arguments)

    monkeypatch.setattr(Summary, "of", away_at_first)
    done = call("run", "shop:app", "--input", str(orders(shop / "o.jsonl", 2, "quick")), "--until-idle")
    assert (0, 3) == (done.exit_code, len(tries)), done.output
    assert "2 accepted" in done.output
