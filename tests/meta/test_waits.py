"""Tests wait in one way, `tests/waiting.py`: every sleep and short limit is found here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tests.waiting import LIMIT

TESTS = Path(__file__).resolve().parent.parent
# Programs that play somebody else's, in another process or environment: this repository is not on their path.
ALONE = (
    "faults/tree.py",
    "integrations/acp/scripted.py",
    "integrations/cli_agents/program.py",
    "integrations/mcp/peers/foreign.py",
    "integrations/mcp/peers/speaking.py",
    "surfaces/dashboard/scripted_agents.py",
    "surfaces/wrap/servers/fastmcp_server.py",
)
SLEEPS = ("time.sleep", "asyncio.sleep", "anyio.sleep", "sleep")
LIMITED = ("asyncio.timeout", "asyncio.wait_for", "communicate")  # calls whose limit is a number of seconds


def findings(source: str) -> list[str]:
    return [
        f"{node.lineno}: {found}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and (found := _finding(node))
    ]


def _finding(call: ast.Call) -> str:
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    limits = [*call.args[-1:], *(each.value for each in call.keywords if each.arg == "timeout")]
    if called in SLEEPS and _number(call.args[0]) != 0.0:
        return "a sleep: wait for a condition with until(), or say why with pause()"
    if (name in LIMITED or called in LIMITED) and any(_number(each) < LIMIT for each in limits):
        return "a limit that a busy machine outlasts: use LIMIT of tests/waiting.py"
    return ""


def _number(node: ast.expr) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return LIMIT


@pytest.mark.core("it reads every test")
def test_every_test_waits_in_the_one_way():
    found = [
        f"{path.relative_to(TESTS)}:{each}"
        for path in sorted(TESTS.rglob("*.py"))
        if path != TESTS / "waiting.py" and str(path.relative_to(TESTS)) not in ALONE
        for each in findings(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.1)",
        "await asyncio.sleep(seconds)",
        "async with asyncio.timeout(10): pass",
        "await asyncio.wait_for(task, 5)",
        "process.communicate(timeout=30)",
    ],
)
def test_another_way_to_wait_is_found(line: str):
    assert findings(f"async def test():\n    {line}")


@pytest.mark.parametrize("line", ["await asyncio.sleep(0)", "async with asyncio.timeout(LIMIT): pass"])
def test_the_one_way_is_not(line: str):
    assert not findings(f"async def test():\n    {line}")
