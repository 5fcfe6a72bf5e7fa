"""Writes the tables of docs/reference/crash-matrix.md again.

python tools/write_crash_matrix.py

The figures are those of crash-matrix.json beside it, which `make bench NAMES=crash_matrix` writes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "crash-matrix.md"
FIGURES = PAGE.with_suffix(".json")
WRITTEN = re.compile(r"(?<=<!-- matrix:begin -->\n).*(?=<!-- matrix:end -->)", re.DOTALL)
HEAD = (
    "who", "tasks", "told", "without a prompt", "told twice", "moved", "run twice", "finished",
    "running for ever",
)  # fmt: skip
COUNTS = ("tasks", "told", "woken", "told_twice", "moved", "run_twice", "finished", "for_ever")
TELLING = ("told", "woken", "told_twice", "moved")  # counts that mean nothing for a subject that tells nobody


def write() -> str:
    """The page as it should be."""
    return page(json.loads(FIGURES.read_text("utf-8")), PAGE.read_text("utf-8"))


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
    days = sorted({row["date"] for row in rows})
    measured = " to ".join(dict.fromkeys((days[0], days[-1])))
    lines = [
        f"Measured on {measured}; nobody speaks for {figures['watch']:g} seconds after the restart.",
        "",
        _line(HEAD),
        "|" + "---|" * len(HEAD),
        *(_line((row["name"], *_counts(row))) for row in rows),
        "",
        "| who | how it is set up | versions | what the model was told |",
        "|---|---|---|---|",
        *(_line((row["name"], row["mode"], _versions(row), _said(row))) for row in rows),
        "",
        *(_unplayed(row) for row in rows if row["not_played"]),
        *(f"Not in the table: **{name}**: {why}" for name, why in figures["missing"].items()),
    ]
    return "\n".join(lines) + "\n"


def _counts(row: dict[str, Any]) -> list[object]:
    counts = row["verdict"]
    return [
        "–" if counts[name] is None or (name in TELLING and not row["tells"]) else counts[name]
        for name in COUNTS
    ]


def _unplayed(row: dict[str, Any]) -> str:
    return f"{row['not_played']} of {row['rounds']} rounds of **{row['name']}** could not be played.\n"


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
    PAGE.write_text(write(), "utf-8")
