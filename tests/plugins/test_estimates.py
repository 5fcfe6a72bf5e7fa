"""F14: how long a tool may take, by its rules and by what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toolbox import SETTINGS, Files

from meantime.blocking import Meantime
from meantime.kernel.estimates import KEPT, MOST, Estimates, Usual, alike, command_head, tool_key
from meantime.plugins import PluginRegistry, ToolExecutor
from meantime.testing import FakeClock


@pytest.mark.behaviour("F14")
@pytest.mark.parametrize(
    ("command", "head"),
    [
        ("npm install", "npm install"),
        ("npm install --save left-pad", "npm install"),
        ("  CI=1 NODE_ENV=test /usr/bin/npm   install x", "npm install"),
        ("cd app && npm install", "npm install"),
        ("cd a; cd b && sudo make test", "make test"),
        ("time make -j8", "make"),
        ("pytest tests/", "pytest"),
        ("python train.py --epochs 3", "python train.py"),
        ("", ""),
        ("FOO=1", ""),
        ("x" * 50_000, "x" * 100),
    ],
)
def test_commands_are_alike_by_their_head(command: str, head: str):
    assert command_head(command) == head


@pytest.mark.behaviour("F14")
def test_other_calls_are_alike_by_their_arguments():
    assert alike({"b": 1, "a": [2]}) == alike({"a": [2], "b": 1})
    assert alike({"a": 1}) != alike({"a": 2})
    assert len(alike({"a": "x" * 5_000})) == 32  # pyright: ignore[reportArgumentType]
    assert alike({"a": "x" * 50_000}) is None
    assert alike({"a": object()}) is None
    assert alike({"command": 4}) == '{"command":4}'


@pytest.mark.behaviour("F14")
def test_an_estimate_is_the_median_of_the_last_durations():
    """One outlier does not count, and what is long ago is forgotten."""
    estimates = Estimates()
    build = tool_key("build", "x")
    assert estimates.of(build) is None
    for seconds in (10, 12, 500):
        estimates.learn(build, seconds)
    assert estimates.of(build) == Usual(12, 3)
    for _ in range(KEPT):
        estimates.learn(build, 3)
    assert estimates.of(build) == Usual(3, 3 + KEPT)
    assert estimates.of(tool_key("test", "x")) is None


@pytest.mark.behaviour("I15")
def test_memory_is_bounded():
    estimates = Estimates()
    for number in range(MOST + 50):
        estimates.learn(tool_key("tool", str(number)), 1)
    assert len(estimates) == MOST
    assert estimates.of(tool_key("tool", "0")) is None
    assert estimates.of(tool_key("tool", str(MOST + 49))) == Usual(1, 1)


@pytest.mark.behaviour("F14")
def test_estimates_are_learned_from_background_tasks(ledger: str, monkeypatch: pytest.MonkeyPatch):
    """By the runtime's clock, in this process, and of completed ones only."""
    clock = FakeClock()
    with Meantime.open(ledger, clock=clock, settings=SETTINGS) as mt:
        PluginRegistry(mt, "conv-1").add(files := Files())
        monkeypatch.setattr(files, "guess_duration", lambda tool, args: 99.0)
        assert files.start_background("fails", {"n": 1}).estimated_duration_seconds == 99.0
        handle = files.start_background("slow", {"n": 1})
        assert handle.estimated_duration_seconds == 99.0  # a rule, as long as nothing is known
        files.gate.wait_begun()
        clock._monotonic += 42  # the tool takes its time
        files.gate.open()
        files.get_result(handle.task_id, wait=True)
        assert files.estimate_duration("slow", {"n": 1}) == 42
        assert files.estimate_duration("slow", {"n": 2}) == 99.0
        assert files.estimate_duration("fails", {"n": 1}) == 99.0


@pytest.mark.behaviour("F14")
def test_estimates_are_learned_from_the_ledger_after_a_restart(tmp_path: Path):
    """Also from what another conversation did."""
    clock = FakeClock()
    with Meantime.open(tmp_path / "work.db", clock=clock, settings=SETTINGS) as mt:
        PluginRegistry(mt, "conv-1").add(files := Files())
        handle = files.start_background("slow", {"command": "npm install a"})
        files.gate.wait_begun()
        clock._monotonic += 7
        files.gate.open()
        files.get_result(handle.task_id, wait=True)
    with Meantime.open(tmp_path / "work.db", settings=SETTINGS) as mt:
        PluginRegistry(mt, "conv-2").add(files := Files())
        assert files.estimate_duration("slow", {"command": "npm install b"}) == 7


@pytest.mark.behaviour("F14")
def test_estimates_are_learned_from_inline_calls(executor: ToolExecutor, files: Files):
    assert files.estimate_duration("quick", {"value": 1}) is None
    executor.execute("quick", {"value": 1})
    estimate: Any = files.estimate_duration("quick", {"value": 1})
    assert 0 < estimate < 20
    with pytest.raises(ValueError, match="arguments are a dict"):
        files.estimate_duration("quick", None)  # pyright: ignore[reportArgumentType]
