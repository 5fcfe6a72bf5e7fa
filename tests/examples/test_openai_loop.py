"""examples/openai_loop.py, as a process of its own, with a scripted model on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from gates import Gate
from integrations.agents.model import Asked, Model

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
NOTICE = re.compile(r'<task-notification id="(\S+)"')


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


def script(*steps: dict[str, Any]) -> str:
    return f"@@{json.dumps(steps)}@@\n"


def start(command: str) -> dict[str, Any]:
    return {"tool": "start", "arguments": {"command": command, "description": command}}


def run(model: Model, folder: Path, *lines: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENAI_BASE_URL": model.url, "TMPDIR": str(folder)}
    program = [sys.executable, str(ROOT / "examples" / "openai_loop.py"), str(folder / "work.db")]
    done = subprocess.run(
        program, env=env, input="".join(lines), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(asked: Asked) -> list[str]:
    """The endings that the model was shown in one question, by the ids of their notices."""
    return [found for said in asked.said if said.role == "user" for found in NOTICE.findall(said.text)]


@pytest.mark.behaviour("N2")
def test_every_ending_reaches_the_model_once(model: Model, tmp_path: Path):
    out = run(
        model,
        tmp_path,
        script(start("echo one"), start("sleep 0.5; echo two"), start("false"), {"text": "three handed off"}),
    )
    assert out.startswith("agent > three handed off\n")
    last = told(model.asked[-1])
    assert len(last) == len(set(last)) == 3
    for asked in model.asked:  # a conversation only grows: the order of completion, from the first on
        assert told(asked) == last[: len(told(asked))]


@pytest.mark.behaviour("N5", "N8")
def test_an_idle_agent_is_woken_once_for_what_ended_together(model: Model, tmp_path: Path):
    """Both have ended before the model has finished its answer: one more turn, for the two."""

    gates = [Gate(tmp_path / "first"), Gate(tmp_path / "second")]

    def end_both(asked: Asked) -> None:
        if asked.answer == {"text": "both run"}:
            for gate in gates:
                gate.open()
            until(lambda: unread(tmp_path / "work.db") == 2, "both have ended")

    model.before_answer = end_both
    out = run(model, tmp_path, script(*(start(gate.wait) for gate in gates), {"text": "both run"}))
    assert out.startswith("agent > both run\n")
    assert len(told(model.asked[-1])) == 2
    assert sum("tool" not in asked.answer for asked in model.asked) == 2


def unread(ledger: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as reading:
        return reading.execute("SELECT count(*) FROM notices WHERE state = 'unread'").fetchone()[0]


@pytest.mark.behaviour("N7")
def test_every_question_has_a_reminder(model: Model, tmp_path: Path):
    gate = Gate(tmp_path / "gate")
    model.before_answer = lambda asked: gate.open() if asked.answer == {"text": "it runs"} else None
    run(model, tmp_path, script(start(gate.wait), {"text": "it runs"}))
    assert all(asked.said[0].role == "system" for asked in model.asked)
    assert "Nothing is running." in model.asked[0].said[0].text
    assert "Background tasks (" in model.asked[1].said[0].text
    assert f": {gate.wait}" in model.asked[1].said[0].text


@pytest.mark.behaviour("N19")
def test_what_it_waited_for_is_not_told_again(model: Model, tmp_path: Path):
    wait = {"tool": "wait", "arguments": {}}
    run(model, tmp_path, script(start("echo quick"), wait, {"text": "I have seen it"}))
    seen = [NOTICE.findall(asked.text) for asked in model.asked]
    assert len(seen[-1]) == 1, "as the result of wait, and nowhere else"
    assert len(model.asked) == 3, "nothing woke it afterwards"


def test_a_tool_that_is_wrong_is_a_text_with_a_code(model: Model, tmp_path: Path):
    wrong = {"tool": "output", "arguments": {"id": "nothing"}}
    out = run(model, tmp_path, script(wrong, {"text": "there is none"}))
    assert "agent > there is none" in out
    assert model.asked[-1].said[-1].text.startswith("not_found: ")
