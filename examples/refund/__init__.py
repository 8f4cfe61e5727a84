"""The refund agent of ``eventlog demo``: refunds.py is a link to the file that the demo runs, README.md says how to play with it."""

from __future__ import annotations
