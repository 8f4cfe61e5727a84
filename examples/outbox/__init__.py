"""The seven cases of an outbox, each asserted: what a step wants done in the world is written down first and done once.

``python -m examples.outbox`` prints a line for each; ``cases.py`` says what each claims, ``shop.py`` is the agent and the mail.
"""

from __future__ import annotations
