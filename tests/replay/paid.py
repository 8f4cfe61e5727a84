"""An app by name, for tests that let other processes load it: the world's agent that pays, and a provider out of reach."""

from __future__ import annotations

from tests.replay.world import app_of, paying, unanswered

app = app_of(paying, unanswered())
