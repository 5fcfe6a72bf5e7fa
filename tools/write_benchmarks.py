"""Writes docs/reference/benchmarks.md, and its pictures, from the last recorded run.

python tools/write_benchmarks.py

The figures are those of benchmarks.json beside it, which `make bench RECORD=1` writes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bar_chart import Bar, bar_chart

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
FIGURES = PAGE.with_suffix(".json")
PICTURES = ROOT / "docs" / "pictures"
OURS = "Meantime"
TEXT = """\
# Benchmarks

This page is generated from the last recorded run. Absolute times belong to the machine that they were
measured on; ratios hold elsewhere, too.

| benchmark | measured | commit | load before | machine |
|---|---|---|---|---|
{runs}

`make bench NAMES="{names}" RECORD=1`, then `python tools/write_benchmarks.py`, repeats it.
`make bench CHECK=1` names what became worse. The load is that of the machine before the run: a busy one makes
every time longer.

## The same no-op work on others

Each task is started, run and recorded, and then its conversation is told, or its result is read. CPU time is
compared, and not the rate, which a busy machine changes more; `make bench NAMES=peers` prints both.

![CPU time of one task, here and on others](../pictures/benchmark_peers.svg)

| | what it promises | CPU per task |
|---|---|---|
{peers}

Queues with a server have two workers; the CPU time is that of the client, the workers and the server
together. Redis appends to its file and syncs it once a second, which is its default. Not measured yet:
procrastinate, DBOS, Mastra, task-spooler, pueue and fastmcp-tasks; and of the others, latencies and memory.
[The crash matrix](crash-matrix.md) says what others tell after a `kill -9`, and
[decision 60](../internals/decisions/0060-queues-measured-beside-workers.md) what a lost worker does to them.

## One at a time

Beside a bare `INSERT` and `COMMIT` of SQLite with `synchronous=FULL`, on the same disk in the same run.

![One write at a time beside a bare commit](../pictures/benchmark_latency.svg)

## Where the time of a task goes

A no-op task costs {cpu_us:.0f} µs of CPU from its start until it is acknowledged. Its SQL alone, replayed
bare in the same groups, costs {sql_us:.0f} µs. The least that a durable no-op could cost in Python, which is
a row, its ending and an asyncio task, is {simple_us:.0f} µs.
[Decision 76](../internals/decisions/0076-the-cost-of-a-task-step-by-step.md) says what each step brought,
and what is left.

## Ratios that are watched

| | ratio | better |
|---|---|---|
{ratios}
"""


def pages() -> dict[Path, str]:
    """Every generated file as it should be."""
    run: dict[str, Any] = json.loads(FIGURES.read_text("utf-8"))
    return {
        PAGE: _page(run),
        PICTURES / "benchmark_peers.svg": _peers_picture(run),
        PICTURES / "benchmark_latency.svg": _latency_picture(run),
    }


def _page(run: dict[str, Any]) -> str:
    return TEXT.format(
        names=" ".join(run),
        runs="\n".join(_run(name, one) for name, one in run.items()),
        peers="\n".join(map(_peer, run["peers"]["rows"])),
        ratios="\n".join(_ratio(*named) for one in run.values() for named in one["ratios"].items()),
        **run["end_to_end"]["rows"][0],
    )


def _run(name: str, one: dict[str, Any]) -> str:
    versions = ", ".join(f"{program} {version}" for program, version in one["versions"].items())
    return f"| {name} | {one['date']} | {one['commit']} | {one['load']} | {one['machine']}; {versions} |"


def _ratio(name: str, one: dict[str, Any]) -> str:
    return f"| {name.replace('/', ': ', 1)} | {one['value']:.2f} | {one['better']} |"


def _peer(row: dict[str, Any]) -> str:
    return f"| {row['name']} | {row['guarantee']} | {row['cpu_us']:,.0f} µs |"


def _peers_picture(run: dict[str, Any]) -> str:
    bars = [
        Bar(row["name"], row["cpu_us"], f"{row['cpu_us']:,.0f} µs", row["name"].startswith(OURS))
        for row in run["peers"]["rows"]
    ]
    title = "CPU time of one no-op task (shorter is better; each line is ten times the one before)"
    return bar_chart(title, bars, logarithmic=True)


def _latency_picture(run: dict[str, Any]) -> str:
    rows = run["latency"]["rows"]
    base = rows[0]["us"]
    bars = [
        Bar(row["name"], row["us"], f"{row['us'] / base:.2f}× ({row['us']:,.0f} µs)", row is not rows[0])
        for row in rows
    ]
    return bar_chart("One at a time beside a bare commit, p50 (shorter is better)", bars)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
