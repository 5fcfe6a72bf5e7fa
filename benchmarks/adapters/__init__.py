"""The CPU that an adapter adds to a framework's agent, per request to its model, with nothing to tell.

Each framework runs in the environment that has it: its agent alone, and the same agent in a Talk, in turn, in
one process. The model is a script. Conversations are in memory, but for Claude Code's; the ledger is a file.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from ..measure import ratio, table, us, verdict

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / ".venv" / "bin" / "python"
THEIRS = ROOT / ".frameworks" / "bin" / "python"
TARGET = 1.3  # times the CPU of the framework alone
ADAPTERS = {
    "pydantic_ai": OURS,
    "langchain": THEIRS,
    "openai_agents": THEIRS,
    "claude_agent_sdk": THEIRS,
    "agent_framework": THEIRS,
    "google_adk": THEIRS,
}


async def run() -> None:
    named = os.environ.get("ROWS", "").split() or list(ADAPTERS)
    rows: list[tuple[object, ...]] = []
    for name in named:
        if not ADAPTERS[name].exists():
            rows.append((name, "not installed: make frameworks"))
            continue
        bare, ours = await _measured(name)
        rows.append((name, us(bare), us(ours), ratio(ours, bare), verdict(ours / bare, TARGET)))
    table(
        "CPU per request to the model, nothing to tell (scripted model, 4 requests a turn)",
        ("adapter", "framework alone", "with Meantime", "ratio", "target"),
        [(*row, *[""] * (5 - len(row))) for row in rows],
    )


async def _measured(name: str) -> tuple[float, float]:
    process = await asyncio.create_subprocess_exec(
        str(ADAPTERS[name]), "-W", "ignore", "-m", "benchmarks.adapters.one_adapter", name,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said, _ = await process.communicate()
    assert process.returncode == 0, f"{name} could not be measured"
    found = json.loads(said.splitlines()[-1])
    return found["bare"], found["ours"]
