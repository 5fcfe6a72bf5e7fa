"""Agents without a terminal (`claude -p`, `codex exec`, `gemini -p`, `opencode run`, `goose run`).

Nobody sees why such a program does not end, so it may not wait for us: the time from the model's last word to
its end is compared with that of the same program without Meantime.
"""

from __future__ import annotations

import pytest

from .installed import MEANTIME
from .scene import Scene
from .terminals import Step

pytestmark = pytest.mark.agents
DONE = {"text": "Done."}
MARGIN = 3.0  # seconds by which two runs of one program may differ on a busy machine


def run(command: str) -> str:
    return f"{MEANTIME} run -q -n quick -c '{command}; echo forty-two'"


def compared(bare: Scene, *steps: Step) -> str:
    """The prompt of the turn with Meantime, which has ended as soon as the one without."""
    steps = (*steps, {"text": "I was told."})
    alone = bare.once(bare.script(*steps))
    bare.install()
    prompt = bare.script(*steps)
    ours = bare.once(prompt)
    assert ours < 3 * alone + MARGIN
    return prompt


def test_a_turn_in_which_work_ended_ends_as_soon_as_without_meantime(bare: Scene):
    hand_off = bare.host.runs(f"{MEANTIME} wait -q $({run('true')})")
    prompt = compared(bare, hand_off, bare.host.runs("sleep 1"), bare.host.runs("sleep 1"), DONE)
    assert bare.told(prompt) == bare.notices[-1:]


def test_a_turn_after_which_work_ends_ends_as_soon_as_without_meantime(bare: Scene):
    prompt = compared(bare, bare.host.runs(run("sleep 2")), DONE)
    assert bare.told(prompt) in ([], bare.notices[-1:])  # Claude Code stays until it was told


def test_a_turn_at_whose_end_work_ends_ends_as_soon_as_without_meantime(bare: Scene):
    """It ends while the model thinks about its last word, so it is told at the end of the turn."""
    prompt = compared(bare, bare.host.runs(run("true")), {**DONE, "delay": 1.0})
    assert bare.told(prompt) in ([], bare.notices[-1:])
