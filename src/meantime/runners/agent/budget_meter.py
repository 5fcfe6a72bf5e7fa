"""The spending of a run, by itself and with everything that it has started, beside its limits."""

from __future__ import annotations

from typing import NamedTuple

from meantime.kernel.budgets import Budget, Spending
from meantime.kernel.limits import NO_LIMIT


class Limit(NamedTuple):
    """One thing that is limited: how much of it is spent (1.0 is all), and its name."""

    part: float
    name: str


class BudgetMeter:
    def __init__(self, budget: Budget, tree: Budget, parent: BudgetMeter | None, began: float) -> None:
        self._budget = budget
        self._tree = tree
        self._parent = parent
        self._began = began
        self.own = Spending()
        self.whole = Spending()

    def add(self, more: Spending) -> None:
        self.own += more
        for tally in self._line():
            tally.whole += more

    def _line(self) -> list[BudgetMeter]:
        """Itself and those above it."""
        found: list[BudgetMeter] = []
        above: BudgetMeter | None = self
        while above is not None:
            found.append(above)
            above = above._parent
        return found

    def spent(self) -> Limit:
        """The limit that is nearest, its own or that of any tree it belongs to."""
        parts = [Limit(*self._budget.spent(self.own))]
        for tally in self._line():
            part, name = tally._tree.spent(tally.whole)
            parts.append(Limit(part, f"{name} of all together"))
        return max(parts)

    def seconds_left(self, now: float) -> tuple[float, float] | None:
        """Until the first limit of time, and until the warning before it; None where there is none."""
        limits = [(self._budget.seconds, self._began)]
        limits += [(tally._tree.seconds, tally._began) for tally in self._line()]
        ends = [(began + most - now, began + most * 0.8 - now) for most, began in limits if most != NO_LIMIT]
        return min(ends, default=None)
