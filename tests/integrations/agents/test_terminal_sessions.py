"""Several sessions of one agent at once, on terminals and as subagents: each is told of its own work."""

from __future__ import annotations

import contextlib

import pytest
from tests.waiting import until

from .scene import Scene

pytestmark = pytest.mark.agents

# How a person begins another conversation in the same process.
CLEARS = {"claude-code": "/clear", "codex": "/new", "gemini": "/clear", "opencode": "/new"}


def test_two_sessions_in_one_folder_are_told_of_their_own_work(scene: Scene):
    gates = [scene.gate("one"), scene.gate("two")]
    with contextlib.ExitStack() as opened:
        windows = [opened.enter_context(scene.opened())]
        prompts = [scene.says(windows[0], scene.run(gates[0]), {"text": "It runs."})]
        # Only now the second: two that start together in a new home break Codex's own database.
        windows.append(opened.enter_context(scene.opened()))
        prompts.append(scene.says(windows[1], scene.run(gates[1]), {"text": "It runs."}))
        for gate in gates:
            gate.open()
        for prompt in prompts:
            scene.woken(prompt)
        for window in windows:
            scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert [scene.told(prompt) for prompt in prompts] == [[notice] for notice in scene.notices]
    assert [len(scene.asked(prompt)) for prompt in prompts] == [2 + scene.cost + 1] * 2


@pytest.mark.parametrize("way", ["shell", "mcp"])
def test_work_of_a_subagent_that_has_ended_is_told_to_the_session_of_the_person(scene: Scene, way: str):
    gate = scene.gate()
    launch = scene.run(gate) if way == "shell" else scene.host.starts(f"{gate.wait}; echo forty-two")
    child = scene.script(launch, {"text": "The subagent is done."})
    with scene.opened() as window:
        if way == "mcp":
            scene.greets(window)
        prompt = scene.says(window, scene.host.delegates(child), {"text": "The subagent has ended."})
        asked = len(scene.asked(child, 2))
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(child)) == asked  # the subagent was not told


@pytest.mark.parametrize("way", ["shell", "mcp"])
def test_a_conversation_that_was_cleared_is_told_of_its_own_work(scene: Scene, way: str):
    """The process, its shell and its MCP servers live on, and belong to another session."""
    if scene.host.name not in CLEARS:
        pytest.skip("its session stays the same")
    gate = scene.gate()
    launch = scene.run(gate) if way == "shell" else scene.host.starts(f"{gate.wait}; echo forty-two")
    with scene.opened() as window:
        before = scene.greets(window)
        window.type(CLEARS[scene.host.name])
        until(lambda: before not in window.text, "the screen is cleared", lambda: window.text)
        scene.idle(window)
        prompt = scene.says(window, launch, {"text": "It runs."})
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert before not in scene.asked(prompt)[-1].text
    assert scene.told(prompt) == scene.notices
