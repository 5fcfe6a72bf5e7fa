"""Runs tests with pytest for a table of the documentation, and counts them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 3600.0  # seconds for one run
FAMILIES = ("--family", "core", "--family", "processes", "--family", "breadth")
TOGETHER = ("-n", "2", "--dist", "loadgroup")


class Counts(NamedTuple):
    passed: int
    failed: int
    skipped: int
    reasons: dict[str, int]  # of those that were skipped


def counted(python: Sequence[str], tests: Sequence[str], log: Path, *options: str) -> Counts:
    """`python`: the command of an interpreter with the package; `log`: where pytest's words go."""
    command = [*python, "-m", "pytest", "-q", "-rs", *FAMILIES, *TOGETHER, *options, *tests]
    with log.open("wb") as out:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            timeout=LONGEST, check=False,
        )  # fmt: skip
    said = log.read_text("utf-8", "replace")
    found = totals(said)
    failed = found["failed"] + found["error"]
    if done.returncode and not failed:
        raise SystemExit(f"pytest ended with {done.returncode}. Look into {log}.")
    return Counts(found["passed"], failed, found["skipped"], reasons(said))


def totals(said: str) -> Counter[str]:
    """The numbers of the last line that pytest prints."""
    last = (said.strip().splitlines() or [""])[-1]
    found = re.findall(r"(\d+) (passed|failed|skipped|error)", last)
    return Counter({word: int(number) for number, word in found})


def reasons(said: str) -> dict[str, int]:
    """Why tests were skipped, and how many, as pytest's option `-rs` says it."""
    found = Counter[str]()
    for number, reason in re.findall(r"(?m)^SKIPPED \[(\d+)\] [^\s:]+(?::\d+)?: (.+)$", said):
        found[reason] += int(number)
    return dict(found.most_common())
