"""Coding agents on a terminal hand off work, and are told once, at no more cost than one question.

A prompt that launches asks the model twice: once for the call, once for the words after it. An agent that
can be woken asks once more when the work has ended. One that cannot is told with the next prompt, whose
question it asks anyway.
"""

from __future__ import annotations

import pytest
from tests.waiting import pause

from .scene import Scene

pytestmark = pytest.mark.agents


def test_work_handed_off_through_the_shell_is_told_once(scene: Scene):
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."})
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(prompt)) == 2 + scene.cost + 1


def test_work_handed_off_through_mcp_is_told_once(scene: Scene):
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.greets(window)
        before = len(scene.asked(prompt))
        scene.says(window, scene.host.starts(f"{gate.wait}; echo forty-two"), {"text": "It runs."})
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(prompt)) == before + 2 + scene.cost + 1


def test_five_endings_at_once_cost_one_question(scene: Scene):
    gates = [scene.gate(f"gate-{number}") for number in range(5)]
    launches = [scene.run(gate) for gate in gates]
    with scene.opened() as window:
        prompt = scene.says(window, *launches, {"text": "They run."})
        for gate in gates:
            gate.open()
            pause(0.1, "they end one after the other, and within a second")
        scene.woken(prompt, 5)
        scene.says(window, {"text": "So all have ended."})
        scene.settled()
    assert sorted(scene.told(prompt)) == sorted(scene.notices)
    assert len(scene.asked(prompt)) == 6 + scene.cost + 1


def test_an_agent_talks_on_while_the_work_runs_and_is_told_afterwards(scene: Scene):
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."})
        scene.says(window, {"text": "We talk on."})
        assert scene.told(prompt) == []
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(prompt)) == 2 + 1 + scene.cost + 1


@pytest.mark.every_agent
def test_an_idle_agent_that_cannot_be_woken_keeps_its_notice_for_the_next_prompt(scene: Scene):
    """Neither Gemini CLI nor goose has a way to give a prompt to a session that is open on a terminal."""
    if scene.host.wakes:
        pytest.skip("it is woken: the other tests of this file show it")
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."})
        asked = len(scene.asked(prompt))
        gate.open()
        scene.ended()
        scene.idle(window)
        assert len(scene.asked(prompt)) == asked
        assert [one["unread"] for one in scene.threads if one["unread"]] == [1]
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
