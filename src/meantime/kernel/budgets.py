"""The limits of an agent's spending, its spending, and how near the one is to the other."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct

from .constraints import LONGEST, Constraint, whole
from .limits import NO_LIMIT

WARN_AT = 0.8


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and (0 <= value <= LONGEST or value == NO_LIMIT)


COUNT = Constraint("a whole number from 0 up, or -1 for no limit", whole(NO_LIMIT).fits)
AMOUNT = Constraint("a number from 0 up, or -1 for no limit", _is_amount)


class Spending(Struct, frozen=True, omit_defaults=True, gc=False):
    turns: int = 0  # requests to the model
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.turns + other.turns,
            self.tool_calls + other.tool_calls,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.seconds + other.seconds,
        )


class Budget(Struct, frozen=True, omit_defaults=True, gc=False, forbid_unknown_fields=True):
    """The most of each; -1 is no limit."""

    turns: Annotated[int, COUNT] = NO_LIMIT
    tool_calls: Annotated[int, COUNT] = NO_LIMIT
    tokens: Annotated[int, COUNT] = NO_LIMIT
    cost: Annotated[float, AMOUNT] = NO_LIMIT
    seconds: Annotated[float, AMOUNT] = NO_LIMIT

    def spent(self, spending: Spending) -> tuple[float, str]:
        """The part that is spent of what is nearest to its end, and its name; 1.0 is all."""
        parts = [
            (_part(getattr(spending, name), getattr(self, name)), name) for name in self.__struct_fields__
        ]
        return max(parts)


def _part(spent: float, most: float) -> float:
    if most == NO_LIMIT:
        return 0.0
    return spent / most if most > 0 else 1.0
