"""The guide's table of what differs between agents of frameworks as tasks.

The checks read it, and each cell says which of two things is checked. So a cell that is wrong fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "frameworks.md"
HEAD = "| framework | cost in a budget | a question, and the task waits | `tools=` | `model=` | `deps=` |"


class Row(NamedTuple):
    framework: str
    cost: str
    question: str
    tools: str
    model: str
    deps: str

    def has(self, cell: str) -> bool:
        """False where it is refused."""
        return not cell.startswith("refused")


def rows() -> dict[str, Row]:
    lines = GUIDE.read_text().partition(HEAD)[2].partition("\n\n")[0].splitlines()[2:]
    found = [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]
    return {row.framework: row for row in found}
