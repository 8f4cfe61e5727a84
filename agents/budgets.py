"""What model calls may cost: prices, spending, limits. Pure values; the fold adds them up, ``spending`` looks at them.

Money is counted in whole 10⁻¹² of the currency unit, so that sums are exact and the same wherever they are made, and
shown as ``Decimal``. What a call cost is recorded with its answer: another price tomorrow changes no yesterday.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs

from .errors import DefinitionError
from .models import Usage

PER: Final = ("activation", "key")
_PICOS: Final = 10**12
_PER_TOKENS: Final = 10**6


def in_picos(amount: Decimal | float | str, what: str) -> int:
    """``amount`` in whole 10⁻¹² of the currency; raises ``DefinitionError`` naming ``what`` when it is no such amount.

    >>> in_picos("0.15", "price")
    150000000000
    """
    try:
        picos = Decimal(str(amount)) * _PICOS
        if picos < 0 or picos != picos.to_integral_value():
            raise InvalidOperation
    except InvalidOperation:
        raise DefinitionError(f"{what} must be an amount of zero or more with at most twelve decimals, not {amount!r}") from None
    return int(picos)


def amount(picos: int) -> Decimal:
    """Money for people.

    >>> amount(150000000000)
    Decimal('0.15')
    """
    shown = (Decimal(picos) / _PICOS).normalize()
    return shown.quantize(Decimal(1)) if shown == shown.to_integral_value() else shown


@attrs.frozen
class Price:
    """What a million tokens cost, in and out, in whatever currency the budgets are in.

    >>> Price(input="2.50", output=10).of(Usage(1000, 200))
    4500000000
    """

    input: Any
    output: Any
    _rates: tuple[int, int] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        rates = tuple(in_picos(each, f"Price({name}=…)") for name, each in (("input", self.input), ("output", self.output)))
        if any(rate % _PER_TOKENS for rate in rates):
            raise DefinitionError(f"Price({self.input!r}, {self.output!r}): give at most six decimals for a million tokens")
        object.__setattr__(self, "_rates", tuple(rate // _PER_TOKENS for rate in rates))

    def of(self, usage: Usage) -> int:
        """What an answer cost, in 10⁻¹²."""
        return self._rates[0] * usage.input_tokens + self._rates[1] * usage.output_tokens


@attrs.frozen
class Spent:
    """Tokens, in and out together, and money."""

    tokens: int = 0
    #: In 10⁻¹² of the currency.
    picos: int = 0

    @property
    def cost(self) -> Decimal:
        """The money in whole units."""
        return amount(self.picos)

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.picos + other.picos)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.tokens - other.tokens, self.picos - other.picos)

    def __str__(self) -> str:
        return f"{self.tokens} tokens" + (f" for {self.cost}" if self.picos else "")


UNSPENT: Final = Spent()


@attrs.frozen
class Budget:
    """Limits on what an agent's model calls use up: for each ``activation``, or for each ``key`` over its whole life.

    The call that reaches a limit is paid for and recorded like any other; the next one is refused (``BudgetExceeded``).
    """

    tokens: int | None = None
    cost: Any = None
    per: str = "activation"
    #: ``cost`` in 10⁻¹²; ``None`` without one.
    picos: int | None = attrs.field(init=False, repr=False, default=None)

    def __attrs_post_init__(self) -> None:
        if self.per not in PER:
            raise DefinitionError(f"Budget(per=…) must be one of {', '.join(PER)}, not {self.per!r}")
        if self.tokens is None and self.cost is None:
            raise DefinitionError("Budget() limits nothing: give tokens=, cost=, or both")
        if self.tokens is not None and (type(self.tokens) is not int or self.tokens < 0):
            raise DefinitionError(f"Budget(tokens=…) must be a whole number of zero or more, not {self.tokens!r}")
        if self.cost is not None:
            object.__setattr__(self, "picos", in_picos(self.cost, "Budget(cost=…)"))

    def limits(self, raised: Spent) -> tuple[int | None, int | None]:
        """(tokens, 10⁻¹² of the currency) with what they were raised by; ``None`` for no limit."""
        tokens = self.tokens + raised.tokens if self.tokens is not None else None
        return tokens, self.picos + raised.picos if self.picos is not None else None


def is_used_up(spent: Spent, limits: tuple[int | None, int | None]) -> bool:
    """Whether a limit is reached: nothing is left for another call."""
    tokens, picos = limits
    return (tokens is not None and spent.tokens >= tokens) or (picos is not None and spent.picos >= picos)


def spent_on(usage: Usage, picos: int) -> Spent:
    """One answer's."""
    return Spent(usage.input_tokens + usage.output_tokens, picos)
