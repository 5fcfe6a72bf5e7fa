"""Claude Code asks to be told when a dev server logs ERROR. Three errors are told once each, while the daemon
and the agent are killed in between."""

from __future__ import annotations

import pytest
from tests.waiting import until

from gates import Gate, open_gate

from .installed import MEANTIME, needs
from .scene import Scene
from .terminals import HOSTS
from .test_terminal_faults import kill_the_daemon

pytestmark = pytest.mark.agents
CLAUDE_CODE = [
    pytest.param(host, marks=needs(host.program), id=host.name)
    for host in HOSTS
    if host.name == "claude-code"
]


def server_and_watch(lines: Gate) -> str:
    """A shell line as a model writes it: a server that logs what it is sent, and a watch of its log."""
    server = f"while :; do read line < {lines.path} && echo $line; done"
    start = f"{MEANTIME} run -q -n dev-server -c '{server}'"
    return f"{MEANTIME} watch $({start}) --match ERROR"


def told(scene: Scene, prompt: str, count: int) -> list[str]:
    until(
        lambda: len(set(scene.told(prompt))) >= count,
        f"the agent is told of {count} errors",
        lambda: scene.told(prompt),
    )
    return scene.told(prompt)


@pytest.mark.parametrize("host", CLAUDE_CODE, indirect=True)
def test_three_errors_of_a_dev_server_are_told_once_each(scene: Scene):
    lines = scene.gate("lines")
    step = scene.host.runs(server_and_watch(lines))
    with scene.opened() as window:
        prompt = scene.says(window, step, {"text": "I watch it."})
        open_gate(lines.path, "ERROR no database\n")
        (first,) = told(scene, prompt, 1)
        scene.idle(window)

        kill_the_daemon(scene.person)
        open_gate(lines.path, "ERROR still no database\n")
        assert told(scene, prompt, 2)[0] == first
        scene.idle(window)
        window.kill()
    open_gate(lines.path, "ERROR gone for good\n")
    with scene.resumed() as window:
        scene.says(window, {"text": "I am back."})
        scene.says(window, {"text": "And again."})
        found = told(scene, prompt, 3)
        assert len(found) == len(set(found)) == 3, found
        asked = scene.asked(prompt)[-1].text
    for error in ("ERROR no database", "ERROR still no database", "ERROR gone for good"):
        assert asked.count(error) >= 1, error
    watch = first.rsplit(".", 2)[0]
    assert found == [f"{watch}.1.{number}" for number in (1, 2, 3)]
    for task in scene.tasks:
        scene.person("cancel", "-w", task)
