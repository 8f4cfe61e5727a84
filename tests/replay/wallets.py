"""A wallet that runs of other streams load and pay into."""

from __future__ import annotations

from intentlog.agents import Aggregate, applies
from intentlog.eventlog import event


@event("paid.in")
class PaidIn:
    cents: int


class Wallet(Aggregate, category="wallets"):
    cents: int = 0

    @applies(PaidIn)
    def _(self, paid: PaidIn) -> Wallet:
        return self.evolve(cents=self.cents + paid.cents)
