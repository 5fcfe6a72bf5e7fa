"""An agent on a terminal, or the daemon, is killed in between: the agent is still told, and once."""

from __future__ import annotations

import os
import signal

import pytest
from tests.waiting import until

from cli.person import Person

from .scene import TOLD, Scene

pytestmark = pytest.mark.agents


def kill_the_daemon(person: Person) -> None:
    """kill -9, and another one takes over."""
    pid = person.info()["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the daemon is gone")
    assert person("up").code == 0


def test_an_agent_killed_while_the_work_runs_is_told_when_it_resumes(scene: Scene):
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."})
        window.kill()
    gate.open()
    scene.ended()
    with scene.resumed() as window:
        if scene.host.wakes_on_restart:
            scene.woken(prompt)
        scene.says(window, {"text": "I am back."})
        scene.says(window, {"text": "And again."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    told = scene.host.wakes_on_restart or scene.host.told_at_the_end
    assert len(scene.asked(prompt)) == 2 + told + 2


def test_an_agent_killed_while_it_is_told_is_told_once_when_it_resumes(scene: Scene):
    """The model thinks about the notice when the agent is killed."""
    gate = scene.gate()
    thinks = {"text": "Never said.", "hang": True}
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."}, told=thinks)
        gate.open()
        scene.ended()
        scene.told_by_a_prompt(window, thinks)
        until(lambda: scene.told(prompt), "the agent is told", lambda: window.text)
        window.kill()
    with scene.resumed() as window:
        scene.says(window, {"text": "I am back."})
        scene.says(window, {"text": "And again."})
        scene.settled()
    assert scene.told(prompt) == scene.notices


def test_a_daemon_killed_while_the_work_runs_costs_no_notice(scene: Scene):
    gate = scene.gate()
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."})
        kill_the_daemon(scene.person)
        gate.open()
        scene.woken(prompt)
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(prompt)) == 2 + scene.cost + 1


def test_a_daemon_killed_while_the_agent_is_told_tells_nothing_twice(scene: Scene):
    """The model thinks about the notice when the daemon is killed."""
    gate, answers = scene.gate(), scene.person.folder / "answers"
    thinks = {**TOLD, "wait_file": str(answers)}
    with scene.opened() as window:
        prompt = scene.says(window, scene.run(gate), {"text": "It runs."}, told=thinks)
        gate.open()
        scene.ended()
        scene.told_by_a_prompt(window, thinks)
        until(lambda: scene.told(prompt), "the agent is told", lambda: window.text)
        kill_the_daemon(scene.person)
        answers.touch()
        window.until(TOLD["text"])
        scene.says(window, {"text": "So it has ended."})
        scene.settled()
    assert scene.told(prompt) == scene.notices
    assert len(scene.asked(prompt)) == 2 + 1 + scene.host.told_at_the_end + 1
