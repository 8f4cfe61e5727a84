"""A client that is killed in the middle changes nothing: what it sent is there once, and the run ends without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from intentlog.agents import Client
from intentlog.eventlog.clock import SECOND, system_clock
from tests.agents.world import Ctx, World
from tests.stores import Store

SENDS = """
import sys
from intentlog.agents import Client
client = Client(sys.argv[1])
n = 0
while True:
    client.send("a", f"k{n % 5}", n, id=f"in-{n}")
    client.signal("a", f"k{n % 5}", "go", n, id=f"s-{n}")
    print(n, flush=True)
    n += 1
"""
WAITS = """
import sys
from intentlog.agents import Client
handle = Client(sys.argv[1]).send("a", "k", "in", id="in")
print("waiting", flush=True)
handle.result(timeout=60)
"""


async def goes(ctx: Ctx, given: Any) -> Any:
    return [given, await ctx.signal("go")]


def begin(program: str, url: str) -> subprocess.Popen[bytes]:
    # Unbuffered: what a buffer had read ahead of a line, ``communicate`` would not give.
    return subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, bufsize=0)


def kill(child: subprocess.Popen[bytes]) -> bytes:
    os.kill(child.pid, signal.SIGKILL)
    output, _ = child.communicate(timeout=20)
    return output


@pytest.mark.parametrize("after", [5, 30])
def test_a_sender_killed_anywhere_leaves_whole_inputs_that_may_be_sent_again(shared_store: Store, shared_url: str, after: int) -> None:
    with World(goes, url=shared_url) as world:
        child = begin(SENDS, shared_url)
        assert child.stdout is not None
        for _ in range(after):  # counted, for a fast disk takes hundreds in a moment
            child.stdout.readline()
        told = len(kill(child).splitlines()) + after
        shared_store.after_a_death(shared_url)
        world.clock.now = system_clock() + SECOND  # the child had the real one
        client = Client(world.log, world.app)
        repeated = [client.send("a", f"k{n % 5}", n, id=f"in-{n}").duplicate for n in range(told)]
        assert [True] * told == repeated  # what was acknowledged is there
        for n in range(told + 2):  # the one under way may or may not be: the id decides
            client.send("a", f"k{n % 5}", n, id=f"in-{n}")
            client.signal("a", f"k{n % 5}", "go", n, id=f"s-{n}")
        world.run(seconds=20)
        assert sorted(range(told + 2)) == sorted(output[0] for n in range(5) for output in world.outputs(f"a-k{n}"))


def test_a_waiter_that_is_killed_leaves_the_run_as_it_is(shared_store: Store, shared_url: str) -> None:
    with World(goes, url=shared_url) as world:
        child = begin(WAITS, shared_url)
        assert child.stdout is not None
        child.stdout.readline()
        world.run()
        kill(child)
        world.clock.now = system_clock() + SECOND
        Client(world.log).signal("a", "k", "go", "!")
        world.run()
        assert ["in", "!"] == Client(world.log).handle("a", "k", "in").result(timeout=1)
