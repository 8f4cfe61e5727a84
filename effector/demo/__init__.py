"""``eventlog demo``: a refund agent is killed after it paid, comes back, and does not pay twice.

``refunds`` is the app, as anybody would write it; ``servers`` stands in for the model and the bank, on a ``loopback`` port; ``story``
tells it.
"""

from __future__ import annotations
