"""A card is charged once, whatever dies: the tool hands its intent id to the payment provider, which keys the charge by it.

``tools.py`` is all that an effector loads; ``shop.py`` decides whom to charge; ``payments.py`` speaks to the provider.
"""

from __future__ import annotations
