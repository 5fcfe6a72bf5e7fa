"""Writes docs/reference/benchmarks.md, and its pictures, from the last recorded run.

python tools/write_benchmarks.py

The figures are those of benchmarks.json beside it, which `make bench RECORD=1` writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bar_chart import Bar, bar_chart
from benchmark_text import DISK, MEMORY, STARTS, TEXT
from flame_graph import flame_graph
from line_chart import Axis, Curve, line_chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
FIGURES = PAGE.with_suffix(".json")
PICTURES = ROOT / "docs" / "pictures"
OURS = "Meantime"
CRASH = ("finished", "run_twice", "doubled", "told", "lost")
LEAST_SEEN = 100  # bytes of a waiting task
Run = dict[str, Any]


def pages() -> dict[Path, str]:
    """Every generated file as it should be."""
    run: Run = json.loads(FIGURES.read_text("utf-8"))
    return {
        PAGE: _page(run),
        PICTURES / "benchmark_peers.svg": _peers_picture(run),
        PICTURES / "benchmark_latency.svg": _latency_picture(run),
        PICTURES / "benchmark_load.svg": _load_picture(run),
        PICTURES / "benchmark_growth.svg": _growth_picture(run),
        PICTURES / "benchmark_flame.svg": _flame_picture(run),
    }


def _page(run: Run) -> str:
    measured = measured_peers(run)
    missing = [row for name in ("peers", "commands") for row in run[name]["rows"] if "missing" in row]
    half = next(row for row in run["load"]["rows"] if row["part"] == 0.5)
    return TEXT.format(
        names=" ".join(run),
        runs="\n".join(_run(name, one) for name, one in run.items()),
        costs="\n".join(_cost(row, measured[0]) for row in measured),
        settings="\n".join(f"| {_named(row)} | {row['settings']} | {row['promise']} |" for row in measured),
        crashes="\n".join(_crash(row) for row in run["peers"]["rows"] if "crash" in row),
        commands="\n".join(_command(row, run) for row in run["commands"]["rows"] if "us" in row),
        memory=memory_section(run),
        disk=disk_section(run),
        starts=starts_section(run),
        missing="\n".join(f"- {row['name']}: {row['missing']}." for row in missing) or "- Nothing.",
        half=f"{half['p99_us'] / half['p50_us']:.1f}",
        threads=_threads(run),
        ratios="\n".join(_ratio(*named) for one in run.values() for named in one["ratios"].items()),
        **run["end_to_end"]["rows"][0],
    )


def measured_peers(run: Run) -> list[dict[str, Any]]:
    """The rows with figures, ours first."""
    return [row for row in run["peers"]["rows"] if "cpu_us" in row]


def _run(name: str, one: Run) -> str:
    versions = ", ".join(f"{program} {version}" for program, version in one["versions"].items())
    return f"| {name} | {one['date']} | {one['commit']} | {one['load']} | {one['machine']}; {versions} |"


def _named(row: dict[str, Any]) -> str:
    return f"{row['name']}, version {row['version']}" if row["version"] else row["name"]


def _cost(row: dict[str, Any], ours: dict[str, Any]) -> str:
    cells = [
        row["name"],
        f"{row['submit_us']:,.0f} / {row['submit_p99_us']:,.0f} µs",
        f"{row['submit_us'] / row['bare_us']:.1f}×",
        f"{row['told_us']:,.0f} µs",
        f"{row['rate']:,.0f}",
        f"{row['cpu_us']:,.0f} µs",
        f"{row['cpu_us'] / ours['cpu_us']:.1f}×",
        f"{row['waiting_bytes'] / 1024:.1f} KB" if row["waiting_bytes"] >= LEAST_SEEN else "–",
    ]
    return f"| {' | '.join(cells)} |"


def _crash(row: dict[str, Any]) -> str:
    crash = row["crash"]
    cells = [f"not played: {crash}", *[""] * 4] if isinstance(crash, str) else [str(crash[c]) for c in CRASH]
    return f"| {row['name']} | {' | '.join(cells)} |"


def _command(row: dict[str, Any], run: Run) -> str:
    base = run["commands"]["rows"][0]["us"]
    return f"| {row['name']} | {row['us']:,.0f} µs | {row['us'] / base:.2f}× |"


def memory_section(run: Run) -> str:
    """Empty while no run of it is recorded."""
    rows = [f"| {row['name']} | {_bytes(row['bytes'])} |" for row in run.get("memory", {}).get("rows", [])]
    return MEMORY.format(rows="\n".join(rows)) if rows else ""


def disk_section(run: Run) -> str:
    """Empty while no run of it is recorded."""
    rows = run.get("disk", {}).get("rows", [])
    if not rows:
        return ""
    pauses = [row for row in rows if "us" in row]
    return DISK.format(
        sizes="\n".join(f"| {row['name']} | {row['bytes']:,.0f} |" for row in rows if "bytes" in row),
        pauses="\n".join(_pause(row, pauses[0]["p99_us"]) for row in pauses),
    )


def starts_section(run: Run) -> str:
    """Empty while no run of it is recorded. Each way in is compared with the one above it."""
    rows = run.get("starts", {}).get("rows", [])
    above = [None, *rows]
    lines = [_start(row, one) for row, one in zip(rows, above, strict=False)]
    return STARTS.format(rows="\n".join(lines)) if rows else ""


def _start(row: dict[str, Any], above: dict[str, Any] | None) -> str:
    beside = f"{row['us'] / above['us']:.2f}× {above['name']}" if above else ""
    return f"| {row['name']} | {row['us']:,.0f} µs | {beside} |"


def _pause(row: dict[str, Any], p99: float) -> str:
    times = " | ".join(f"{row[figure]:,.0f} µs" for figure in ("us", "p99_us", "longest_us"))
    return f"| {row['name']} | {times} | {row['longest_us'] / p99:.1f}× |"


def _bytes(count: float) -> str:
    return f"{count / 1024:.1f} KB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _threads(run: Run) -> str:
    """The parts of the threads in a sentence, the biggest first."""
    whole = sum(row["us"] for row in run["flame"]["rows"])
    parts: dict[str, float] = {}
    for row in run["flame"]["rows"]:
        parts[row["stack"][0]] = parts.get(row["stack"][0], 0.0) + row["us"] / whole
    ordered = sorted(parts.items(), key=lambda one: -one[1])
    return ", ".join(f"{name} {part:.0%}" for name, part in ordered if part >= 0.01)


def _ratio(name: str, one: Run) -> str:
    return f"| {name.replace('/', ': ', 1)} | {one['value']:.2f} | {one['better']} |"


def _peers_picture(run: Run) -> str:
    bars = [
        Bar(row["name"], row["cpu_us"], f"{row['cpu_us']:,.0f} µs", row["name"].startswith(OURS))
        for row in measured_peers(run)
    ]
    title = "CPU time of one no-op task (shorter is better; each line is ten times the one before)"
    return bar_chart(title, bars, logarithmic=True)


def _latency_picture(run: Run) -> str:
    rows = run["latency"]["rows"]
    base = rows[0]["us"]
    bars = [
        Bar(row["name"], row["us"], f"{row['us'] / base:.2f}× ({row['us']:,.0f} µs)", "bare" not in row)
        for row in rows
    ]
    return bar_chart("One at a time beside a bare commit, p50 (shorter is better)", bars)


def powers(values: list[float]) -> list[tuple[float, str]]:
    """The powers of ten around these microseconds, as ticks."""
    low, high = 1.0, 10.0
    while low * 10 <= min(values):
        low, high = low * 10, high * 10
    while high < max(values):
        high *= 10
    found: list[tuple[float, str]] = []
    while low <= high:
        found.append((low, f"{low:,.0f} µs" if low < 1_000 else f"{low / 1_000:,.0f} ms"))
        low *= 10
    return found


def _load_picture(run: Run) -> str:
    rows = run["load"]["rows"]
    curves = [
        Curve(name, [(row["part"], row[figure]) for row in rows])
        for name, figure in (("p50", "p50_us"), ("p99", "p99_us"))
    ]
    across = Axis(
        "submits a second", [(row["part"], f"{row['rate']:,.0f} ({row['part']:.0%})") for row in rows]
    )
    up = Axis("from due to durable", powers([value for one in curves for _, value in one.points]), True)
    return line_chart("Durable submits over load, as parts of the most (lower is better)", across, up, curves)


def _growth_picture(run: Run) -> str:
    rows = run["history"]["rows"]
    curves = [Curve(row["name"], list(zip(row["sizes"], row["us"], strict=True))) for row in rows]
    across = Axis("finished tasks in the ledger", [(size, f"{size:,}") for size in rows[0]["sizes"]], True)
    up = Axis("p50 of one", powers([value for row in rows for value in row["us"]]), True)
    return line_chart("Operations beside a growing history (flat is better)", across, up, curves)


def _flame_picture(run: Run) -> str:
    stacks = [(row["stack"], row["us"]) for row in run["flame"]["rows"]]
    return flame_graph("CPU time of one no-op task, from its start until it is told", stacks, "µs")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
