"""Runs tests with pytest for a table of the documentation, and counts them.

A test that fails beside others is run once more, alone. It has failed if it fails twice.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from failed_tests import MOST, failed

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 3600.0  # seconds for one run
FAMILIES = ("--family", "core", "--family", "processes", "--family", "breadth")
TOGETHER = ("-n", "2", "--dist", "loadgroup")


class Counts(NamedTuple):
    passed: int
    alone: int  # of those that passed: in the second run
    failed: int
    skipped: int
    reasons: dict[str, int]  # of those that were skipped


def counted(python: Sequence[str], tests: Sequence[str], log: Path, *options: str) -> Counts:
    """`python`: the command of an interpreter with the package; `log`: where pytest's words go."""
    cache = log.with_suffix(".cache")
    shutil.rmtree(cache, ignore_errors=True)
    words = [*python, "-m", "pytest", "-q", "-rs", *FAMILIES, "-o", f"cache_dir={cache}", *options]
    first, code = _run([*words, *TOGETHER, *tests], log)
    again = failed(cache / "v/cache/lastfailed")
    if code and (not again or len(again) > MOST):
        raise SystemExit(f"{len(again)} tests have failed, and pytest ended with {code}. Look into {log}.")
    second = Counter[str]()
    if again:
        said, code = _run([*words, *again], log.with_suffix(".again.log"))
        second = totals(said)
    if code and not second["failed"] + second["error"]:
        raise SystemExit(f"pytest ended with {code}. Look into {log}.")
    one = totals(first)
    return Counts(
        one["passed"] + second["passed"],
        second["passed"],
        second["failed"] + second["error"],
        one["skipped"],
        reasons(first),
    )


def _run(command: list[str], log: Path) -> tuple[str, int]:
    with log.open("wb") as out:
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            timeout=LONGEST, check=False,
        )  # fmt: skip
    return log.read_text("utf-8", "replace"), done.returncode


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
