from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from intentlog.eventlog.owners import is_dead, this_process


def test_a_process_knows_itself_and_is_alive():
    assert this_process() == this_process()
    assert this_process("worker-1") == f"{this_process()}/worker-1"
    assert not is_dead(this_process())
    assert not is_dead(this_process("worker-1"))


def test_another_process_is_alive_until_it_ends_and_its_name_is_never_ours():
    child = subprocess.Popen(
        [sys.executable, "-c", "from intentlog.eventlog.owners import this_process; print(this_process('x'), flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        assert this_process("x") != owner
        assert not is_dead(owner)
        child.kill()
        deadline = 200
        while not is_dead(owner) and deadline:  # dead as soon as it is a zombie, before anybody has waited for it
            deadline -= 1
            os.sched_yield()
    assert is_dead(owner)


def test_a_reused_process_id_is_not_taken_for_the_owner():
    host, namespace, pid, _ = this_process().split("/")
    assert is_dead(f"{host}/{namespace}/{pid}/1")


@pytest.mark.parametrize(
    "owner", ["", "e", "worker/1", "a/b/c/d", "elsewhere/1/2/3", f"{socket.gethostname()}/0/1/1", f"{socket.gethostname()}/x/not a number/1"]
)
def test_whoever_cannot_be_known_to_be_dead_is_not(owner):
    assert not is_dead(owner)
