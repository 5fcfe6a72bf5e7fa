"""The limits of an agent's spending, its spending, and how near the one is to the other."""

from __future__ import annotations

from msgspec import Struct

from .limits import NO_LIMIT

WARN_AT = 0.8


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

    turns: int = NO_LIMIT
    tool_calls: int = NO_LIMIT
    tokens: int = NO_LIMIT
    cost: float = NO_LIMIT
    seconds: float = NO_LIMIT

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
