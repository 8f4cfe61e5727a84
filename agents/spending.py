"""The budget as agent code meets it: ``ctx.spent``, ``ctx.raise_budget`` and the look before each model call.

Rules of this file: the same as in ``steps``. A refusal that code caught is a recorded step, so
that a re-run refuses again with the same words, whatever prices and limits are by then.
"""

from __future__ import annotations

from decimal import Decimal

from . import facts
from .budgets import UNSPENT, Spent, in_picos, is_used_up, spent_on
from .errors import BudgetExceeded, DefinitionError, StepDrift
from .models import ModelRequest, ModelResponse
from .recorded import Recorded


class Spending(Recorded):
    """What the steps of a turn cost."""

    @property
    def spent(self) -> Spent:
        """Tokens and cost of the model calls so far: of this activation, or of the key when that is what the budget counts."""
        return self._spent_before() + self._spent

    def raise_budget(self, *, tokens: int = 0, cost: Decimal | float | str = 0) -> None:
        """Allow more, from now on: a recorded step, counted once for the activation or the key, as the agent's budget is."""
        budget = self._definitions.agent.budget
        if budget is None:
            raise DefinitionError(f"agent {self._definitions.agent.name} has no budget to raise: @agent(…, budget=Budget(…))")
        more = Spent(tokens, in_picos(cost, "ctx.raise_budget(cost=…)"))
        if type(tokens) is not int or tokens < 0 or more == Spent():
            raise DefinitionError(f"ctx.raise_budget(tokens={tokens!r}, cost={cost!r}): give tokens=, cost=, or both, more than zero")
        step = self._step("budget", f"raised by {more}")
        recorded = self._activation.raises.get(step)
        if recorded is None:
            self._refuse_new(step, "budget", f"raised by {more}")
            self.staged.append(facts.BudgetRaised(self.seq, step, budget.per, more.tokens, more.picos))
        elif recorded != more:
            self._fail(StepDrift(f"{self._place(step)} (budget)", f"raised by {recorded}", f"raised by {more}"))
        self._raised += more

    def _spent_before(self) -> Spent:
        """What the key had spent outside of this activation, as of the turn whose code is running."""
        budget = self._definitions.agent.budget
        if budget is None or budget.per != "key":
            return Spent()
        epochs = self._activation.epochs
        return epochs[self._epoch].others if self._epoch < len(epochs) else self._run.spent - self._activation.spent

    def _count(self, step: int, request: ModelRequest, response: ModelResponse) -> None:
        cached = self._activation.models.get(step)
        used = spent_on(response.usage, cached.cost if cached is not None else self._definitions.cost_of(request, response))
        self._spent = used if self._spent is UNSPENT else self._spent + used

    def _check_budget(self, step: int, model: str, digest: bytes) -> None:
        """Before a call that is not in the journal: raises ``BudgetExceeded`` when nothing is left for it, then and in every re-run."""
        refused = self._activation.refusals.get(step)
        if refused is not None:
            if refused.digest != digest:
                self._fail(StepDrift(f"{self._place(step)} (model call)", "a call refused for its budget", "another request", "request"))
            raise BudgetExceeded.of(self.stream, self.seq, refused)
        budget = self._definitions.agent.budget
        if budget is None or step < self._frontier[0]:
            return
        if budget.picos is not None and model not in self._definitions.prices:
            known = ", ".join(sorted(self._definitions.prices)) or "none"
            raise DefinitionError(f"agent {self._definitions.agent.name} has a budget in money; App(prices=…) has no price of {model!r}, but of: {known}")
        raised = self._raised
        if budget.per == "key":
            raised += self._run.raised - self._activation.raised
        limits, spent = budget.limits(raised), self.spent
        if is_used_up(spent, limits):
            reached = facts.BudgetReached(self.seq, step, digest, budget.per, spent.tokens, spent.picos, *limits)
            self.staged.append(reached)
            raise BudgetExceeded.of(self.stream, self.seq, reached)
