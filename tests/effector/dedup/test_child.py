"""The process that the kit drives line by line: nothing that it wrote may be lost, however the reading is split."""

from __future__ import annotations

import time

from intentlog.effector.testing.dedup.child import Child

MANY = """
import sys
sys.stdin.readline()
print("\\n".join(["first", "second", "third"]), flush=True)
sys.stdin.readline()
"""


def test_what_was_written_together_with_a_line_that_was_heard_is_told_after_the_kill():
    child = Child(MANY, "url")
    assert "first" == child.hear()
    time.sleep(0.05)  # all three lines are in the pipe
    assert ["second\n", "third\n"] == child.kill()


def test_and_when_it_ends_by_itself():
    child = Child(MANY, "url")
    assert "first" == child.hear()
    child.say("end")
    assert "second\nthird\n" == child.end(20)
