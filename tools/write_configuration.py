"""Writes the table of docs/reference/configuration.md again, from the structs as they are.

python tools/write_configuration.py
"""

from __future__ import annotations

from pathlib import Path

from meantime.app.config_text import table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "configuration.md"
BEGIN = "<!-- The rest is written by tools/write_configuration.py -->\n"


def write() -> str:
    """The page as it should be: what people wrote, then the table."""
    own, mark, _ = PAGE.read_text("utf-8").partition(BEGIN)
    assert mark, f"{PAGE} has lost its mark"
    return f"{own}{mark}\n{table()}"


if __name__ == "__main__":
    PAGE.write_text(write(), "utf-8")
