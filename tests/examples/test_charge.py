"""The charge example: its tool is the one that was promised, and a card is charged once whatever dies."""

from __future__ import annotations

import ast
import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from examples.charge import tools
from examples.charge.shop import app
from intentlog.agents import facts
from intentlog.agents.client import Client
from intentlog.effector.demo.servers import Ledger, servers
from intentlog.effector.process import Process
from intentlog.eventlog.opening import open_log
from tests.acceptance.harness import eventlog, run

AS_PROMISED = """
@tool(side_effect=True)
async def charge(customer_id: str, amount_cents: int, *, intent: IntentInfo) -> str:
    return await payments.charge(
        customer_id, amount_cents, idempotency_key=intent.intent_id
    )
"""


def test_the_tool_is_written_as_it_was_promised():
    written = [each for each in ast.parse(inspect.getsource(tools)).body if isinstance(each, ast.AsyncFunctionDef)]
    assert [ast.dump(each) for each in ast.parse(AS_PROMISED).body] == [ast.dump(each) for each in written]


#: registry and where the first effector dies → status, requests that reached the provider, charges.
LIVES = {
    ("AS_WRITTEN", ""): ("OK", 1, 1),
    ("AS_WRITTEN", "tool.called"): ("UNKNOWN", 1, 1),
    ("TOOLS", "attempt.recorded"): ("OK", 1, 1),
    ("TOOLS", "tool.called"): ("OK", 2, 1),
}


@pytest.mark.parametrize("registry, boundary", LIVES)
def test_a_card_is_charged_once_whatever_dies(registry: str, boundary: str, tmp_path: Path):
    ledger, url = Ledger(), f"sqlite:///{tmp_path}/log.db"
    log = open_log(url)
    Client(log, app).send("customers", "ann", 4200, id="order-1")
    turns(log)
    with servers(ledger) as provider:
        environment = {"CHARGE_PROVIDER": provider, "EFFECTOR_UNTIL_IDLE": "1"}
        command = eventlog("effector", "--registry", f"examples.charge.tools:{registry}", "--log", url, "--poll-ms", "20")
        if boundary:
            first = run(command, environment | {"EVENTLOG_CRASH_AT": boundary})
            assert first.killed, first.output
        last = run(command, environment)
        assert 0 == last.code, last.output
    turns(log)
    (settled,) = told(log, facts.IntentSettled)
    ((status, receipt),) = [fact.output for fact in told(log, facts.Completed)]
    assert LIVES[registry, boundary] == (settled.status, len(ledger.payment_requests), len(ledger.receipts))
    assert (settled.status, settled.value) == (status, receipt)
    assert {settled.intent_id} >= set(ledger.payment_requests)
    if status == "OK":
        assert {settled.intent_id: receipt} == ledger.receipts
    log.close()


def turns(log: Any) -> None:
    """The worker's part, until there is nothing left for it to do."""
    asyncio.run(asyncio.wait_for(Process(app, log, "worker", with_effector=False).run(until_idle=True), 20))


def told(log: Any, kind: type) -> list[Any]:
    return [fact for each in log.read("customers-ann") if isinstance(fact := app.codec.decode_stored(each), kind)]
