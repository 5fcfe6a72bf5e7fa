"""Checks that enough branches are covered: branches alone, as coverage.py's own floor mixes them with lines.

python tools/check_branches.py REPORT [--floor 95]    the share of each package; fails below the floor
python tools/check_branches.py REPORT --missing       and every branch that no test took, by file

REPORT is written by `coverage json`. `make coverage` runs both.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

FLOOR = 95.0  # percent of the branches of all packages together


class Branches(NamedTuple):
    covered: int = 0
    all: int = 0

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.all if self.all else 100.0

    def __str__(self) -> str:
        return f"{self.percent:5.1f} %  {self.covered} of {self.all} branches"


def by_package(report: dict[str, Any]) -> dict[str, Branches]:
    """By the folder below `meantime`."""
    found: defaultdict[str, Branches] = defaultdict(Branches)
    for file, measured in report["files"].items():
        package = file.replace("\\", "/").partition("meantime/")[2].partition("/")[0]
        totals, before = measured["summary"], found[package]
        found[package] = Branches(
            before.covered + totals["covered_branches"], before.all + totals["num_branches"]
        )
    return dict(found)


def missing(report: dict[str, Any]) -> list[str]:
    """As `file: from->to`; a line below zero is the end of the function that begins there."""
    return [
        f"{file}: {', '.join(f'{start}->{end}' for start, end in measured['missing_branches'])}"
        for file, measured in report["files"].items()
        if measured["missing_branches"]
    ]


def together(packages: dict[str, Branches]) -> Branches:
    return Branches(sum(one.covered for one in packages.values()), sum(one.all for one in packages.values()))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check that enough branches are covered.")
    parser.add_argument("report", type=Path, help="what `coverage json` wrote")
    parser.add_argument("--floor", type=float, default=FLOOR, help="percent (default: %(default)g)")
    parser.add_argument("--missing", action="store_true", help="list the branches that no test took")
    given = parser.parse_args(arguments)
    report = json.loads(given.report.read_text("utf-8"))
    packages = by_package(report)
    lines = missing(report) if given.missing else []
    lines += [f"{name:10} {one}" for name, one in sorted(packages.items())]
    found = together(packages)
    if not found.all:
        lines.append("No branches were measured: run coverage with branch = true.")
    is_enough = bool(found.all) and found.percent >= given.floor
    verdict = "at least" if is_enough else "NOT"
    lines.append(f"{'together':10} {found}; {verdict} {given.floor:g} %")
    print("\n".join(lines))  # noqa: T201  what it is for
    return 0 if is_enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
