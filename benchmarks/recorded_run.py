"""The last recorded run: its ratios, and whether a new run is worse.

    make bench CHECK=1            measures what is recorded, and names what became worse
    make bench RECORD=1           measures it, and records it

Only ratios are compared: each is of two things that were measured in the same run, so that another machine,
or a busy one, changes them little.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .measure import Ratio

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "reference" / "benchmarks.json"
SLACK = 0.15  # more than this is named; less may be noise


def compare(recorded: Mapping[str, Ratio], measured: Mapping[str, Ratio]) -> list[str]:
    """A line for each ratio that became worse, or that is missing."""
    found: list[str] = []
    for name, was in recorded.items():
        now = measured.get(name)
        if now is None:
            found.append(f"{name}: not measured; it was {was.value:.2f}.")
        elif was.better == "less" and now.value > was.value * (1 + SLACK):
            found.append(f"{name}: {now.value:.2f}, and it was {was.value:.2f} (less is better).")
        elif was.better == "more" and now.value < was.value / (1 + SLACK):
            found.append(f"{name}: {now.value:.2f}, and it was {was.value:.2f} (more is better).")
    return found


def ratios_of(run: Mapping[str, Any], benchmarks: Sequence[str]) -> dict[str, Ratio]:
    """Those of a recorded run that these benchmarks measure."""
    return {
        name: Ratio(one["value"], one["better"])
        for benchmark in benchmarks
        for name, one in run.get(benchmark, {}).get("ratios", {}).items()
    }


def load() -> dict[str, Any]:
    """The last run of each benchmark, by its name."""
    return json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}


def recorded_names(*, watched: bool) -> list[str]:
    """Benchmarks of the recorded run; only those with ratios if these are watched."""
    return [name for name, run in load().items() if run["ratios"] or not watched]


def record(
    benchmark: str, ratios: Mapping[str, Ratio], rows: Sequence[Mapping[str, Any]], load1: float
) -> None:
    """Takes the place of the run of this benchmark that was recorded before; those of others stay."""
    run = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _commit(),
        "machine": _machine(),
        "load": round(load1, 1),
        "versions": {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version},
        "ratios": {name: one._asdict() for name, one in ratios.items() if name.startswith(f"{benchmark}/")},
        "rows": rows,
    }
    FILE.write_text(json.dumps(load() | {benchmark: run}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _commit() -> str:
    said = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def _machine() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {models[0] if models else platform.machine()}, {platform.system()}"
