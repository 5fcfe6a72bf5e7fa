"""Draws the diagram in docs/internals/life-of-a-task.md again, from the one table of moves.

python tools/draw_lifecycle.py
"""

from __future__ import annotations

from pathlib import Path

from meantime.kernel.lifecycle import diagram

PAGE = Path(__file__).resolve().parent.parent / "docs" / "internals" / "life-of-a-task.md"
BEGIN = "<!-- lifecycle:begin -->"
END = "<!-- lifecycle:end -->"


def redraw(page: str) -> str:
    """The page with a fresh diagram between its markers; all else as it was."""
    for marker in (BEGIN, END):
        if page.count(marker) != 1:
            raise SystemExit(f"{PAGE.name} must hold {marker} exactly once.")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n```mermaid\n{diagram()}\n```\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(redraw(PAGE.read_text("utf-8")), "utf-8")
