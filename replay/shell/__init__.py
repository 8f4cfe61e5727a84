"""The debugging shell: a person walks one history event by event, in both directions, and asks what, why and what if.

``Session`` is all of it without a terminal: a line goes in, an ``Answer`` comes out. Three front ends read the lines:
``front_ptpython``, ``front_ipython`` and ``front_plain``.
"""

from __future__ import annotations

from .answers import Answer
from .session import Session
from .table import COMMANDS

__all__ = ["COMMANDS", "Answer", "Session"]
