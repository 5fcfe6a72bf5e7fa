"""What a run has spent, by itself and with all that it has started, beside what it may spend."""

from __future__ import annotations

from meantime.kernel.budgets import Budget, Spending


class Tally:
    def __init__(self, budget: Budget, tree: Budget, parent: Tally | None) -> None:
        self._budget = budget
        self._tree = tree
        self._parent = parent
        self.own = Spending()
        self.whole = Spending()

    def add(self, more: Spending) -> None:
        self.own += more
        above: Tally | None = self
        while above is not None:
            above.whole += more
            above = above._parent

    def spent(self) -> tuple[float, str]:
        """The part that is spent of what is nearest to its end, of its own or of any tree it belongs to."""
        parts = [self._budget.spent(self.own)]
        above: Tally | None = self
        while above is not None:
            part, name = above._tree.spent(above.whole)
            parts.append((part, f"{name} of all together"))
            above = above._parent
        return max(parts)
