"""Runs the suites that meet the operating system on the POSIX path; writes a table of tested-versions.md.

python tools/run_posix_suites.py [tests/shell … trees]

It is Linux that runs them, without what only Linux has: docs/guides/platforms.md says how. Hostile process
trees are counted at the end, if they are named or nothing is.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from counted_tests import ROOT, counted

RESULTS = ROOT / "docs" / "reference" / "posix-suites.json"
PAGE = ROOT / "docs" / "reference" / "tested-versions.md"
BEGIN, END = "<!-- POSIX path: written by tools/run_posix_suites.py -->\n", "<!-- end of suites -->"
SUITES = ("tests/system", "tests/shell", "tests/runtime", "tests/daemon", "tests/cli", "tests/agents")
TREES = "hostile process trees"
LINUX = "Linux only: "
HEAD = ("suite", "passed", "failed", "skipped: need Linux", "skipped: other reasons", "on")
LONGEST = 1800.0  # seconds for the trees


def main(wanted: list[str]) -> int:
    """Exit code 1 if a test failed. Trees that survive a cancel are counted, and fail nothing."""
    logs = ROOT / ".matrix"
    logs.mkdir(exist_ok=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for suite in [each for each in wanted if each != "trees"] if wanted else SUITES:
        known[suite] = tested(suite, logs / f"posix-{Path(suite).name}.log")
        record(known, suite)
    if not wanted or "trees" in wanted:
        known[TREES] = trees()
        record(known, TREES)
    return int(any(row.get("failed") for row in known.values()))


def record(known: dict[str, dict[str, object]], name: str) -> None:
    """At once: a whole run takes long."""
    sys.stderr.write(f"{name}: {known[name]}\n")
    rows = {each: known[each] for each in (*SUITES, TREES) if each in known}
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n")
    PAGE.write_text(with_table(PAGE.read_text(), rows))


def tested(suite: str, log: Path) -> dict[str, object]:
    found = counted([sys.executable], [suite], log, "--platform=posix")
    needs_linux = sum(count for reason, count in found.reasons.items() if reason.startswith(LINUX))
    others = {reason: count for reason, count in found.reasons.items() if not reason.startswith(LINUX)}
    return {
        "passed": found.passed, "failed": found.failed, "linux": needs_linux,
        "others": others, "date": date.today().isoformat(),
    }  # fmt: skip


def trees() -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.posix_mode.tree_figures", "cancel"], cwd=ROOT,
        env={**os.environ, "MEANTIME_PLATFORM": "posix"}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    found = re.search(r"(\d+) hostile trees, (\d+) survivors", done.stdout)
    if found is None or done.returncode:
        raise SystemExit(f"The trees were not counted:\n{done.stdout}{done.stderr}")
    trees, survive = map(int, found.groups())
    return {"passed": trees - survive, "survive": survive, "date": date.today().isoformat()}


def table(known: dict[str, dict[str, object]]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", "|" + len(HEAD) * "---|"]
    for name, row in known.items():
        if name == TREES:
            weaker = f"{row['survive']} outlive the cancel"
            cells = (f"{name}, cancelled", row["passed"], "", "", weaker, row["date"])
        else:
            keys = ("passed", "failed", "linux")
            cells = (f"`{name}`", *(row[key] for key in keys), _others(row["others"]), row["date"])
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _others(reasons: object) -> str:
    assert isinstance(reasons, dict)
    return "; ".join(f"{count}: {reason}" for reason, count in reasons.items())


def with_table(text: str, known: dict[str, dict[str, object]]) -> str:
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(known) + END + rest.partition(END)[2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
