"""Writes the tables of docs/internals/crash-matrix.md from crash-matrix.json beside it, which `make bench
NAMES=crash_matrix` writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

INTERNALS = Path(__file__).resolve().parents[1] / "docs" / "internals"
FIGURES = INTERNALS / "crash-matrix.json"
PAGE = INTERNALS / "crash-matrix.md"
WRITTEN = re.compile(r"(?<=<!-- matrix:begin -->\n).*(?=<!-- matrix:end -->)", re.DOTALL)
HEAD = (
    "who", "mode", "tasks", "told", "without a prompt", "told twice", "work run twice", "work finished",
    "running for ever",
)  # fmt: skip
COUNTS = ("tasks", "told", "woken", "told_twice", "run_twice", "finished", "for_ever")


def page(figures: dict[str, Any], text: str) -> str:
    """The page as it should be.

    figures: the JSON file.
    text: the page as it is.
    """
    if not WRITTEN.search(text):
        raise SystemExit(f"{PAGE} has no <!-- matrix:begin --> and <!-- matrix:end -->.")
    return WRITTEN.sub(lambda _: _tables(figures), text)


def _tables(figures: dict[str, Any]) -> str:
    rows = figures["rows"]
    lines = [
        f"Measured on {figures['date']}, {figures['rounds']} rounds each; nobody speaks for "
        f"{figures['watch']:g} seconds.",
        "",
        _line(HEAD),
        "|" + "---|" * len(HEAD),
        *(_line((row["name"], row["mode"], *(row["verdict"][name] for name in COUNTS))) for row in rows),
        "",
        "| who | versions | what the model was told |",
        "|---|---|---|",
        *(_line((row["name"], _versions(row), _said(row))) for row in rows),
        "",
        "Not in the table:",
        "",
        *(f"- **{name}**: {why}" for name, why in figures["missing"].items()),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: tuple[object, ...]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _versions(row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in row["versions"].items())


def _said(row: dict[str, Any]) -> str:
    return "<br>".join(f"`{_plain(text)}`" for text in row["said"]) or "nothing"


def _plain(text: str) -> str:
    """As one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(FIGURES.read_text()), PAGE.read_text()))
