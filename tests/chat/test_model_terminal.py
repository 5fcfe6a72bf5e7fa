"""The executable with a model behind a URL: scripted, on loopback, in the OpenAI protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.person import Person
from integrations.agents.model import Model

from .conftest import Talk
from .test_talking import told

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
EXPLORER = """
import os
from tests.waiting import until_async

async def explore(talk):
    file = talk.messages[-1].text.strip()
    await until_async(lambda: os.path.exists(file), "the file is there")
    return "4 modules"
"""


@pytest.fixture
def server() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture(scope="module")
def person(person: Person) -> Person:
    """With an agent in the daemon's configuration: a function, which needs no program of somebody else."""
    with (person.folder / "config.toml").open("a") as config:
        config.write('[agents.explore]\nrunner = "python"\nagent = "explorer:explore"\n')
    (person.folder / "explorer.py").write_text(EXPLORER)
    person.environ["PYTHONPATH"] = os.pathsep.join((str(person.folder), str(ROOT)))
    person.leave()
    person.up()
    return person


def script(*steps: dict[str, Any]) -> str:
    return f"@@{json.dumps(steps)}@@"


@pytest.mark.behaviour("N5")
def test_a_model_behind_a_url_is_woken_and_told_once(talk: Talk, server: Model, tmp_path: Path):
    terminal = talk("--model", "openai:scripted", "--base-url", server.url, columns=200).ready()
    terminal.sees("scripted · with the daemon")
    call = {"tool": "run", "arguments": {"command": "until [ -e go ]; do sleep 0.02; done", "async": True}}
    terminal.say(script(call, {"text": "I handed it off."}))
    terminal.sees("● run  until", "Launched async task: ", "\nI handed it off.", "1 running")
    assert len(server.asked) == 2
    (tmp_path / "go").touch()
    terminal.sees("completed in", "ECHO ")
    assert len(told(terminal)) == 1
    assert sum("done' completed:" in said.text for said in server.asked[-1].said) == 1
    assert len(server.asked) == 3, "one question for the ending, and no more"
    terminal.press("ctrl-d")
    assert terminal.end() == 0


@pytest.mark.behaviour("F1")
def test_a_model_starts_agents_of_the_configuration(talk: Talk, server: Model, tmp_path: Path):
    terminal = talk("--model", "openai:scripted", "--base-url", server.url, columns=200).ready()
    given = {"subagent_name": "explore", "goal_prompt": str(tmp_path / "go"), "async": True}
    terminal.say(script({"tool": "task", "arguments": given}, {"text": "It explores."}))
    terminal.sees("● task  explore: ", "Launched async task: explore (", "\nIt explores.", "1 running")
    (tmp_path / "go").touch()
    terminal.sees("✓ explore (", "└ 4 modules", "ECHO ")
    assert len(told(terminal)) == 1
    assert sum('"final_message": "4 modules"' in said.text for said in server.asked[-1].said) == 1


def test_a_model_that_is_not_there(talk: Talk):
    terminal = talk("--model", "openai:scripted", "--base-url", "http://127.0.0.1:9").ready()
    terminal.say("hello")
    terminal.sees("The model did not answer: ")
    terminal.say("/tasks")
    terminal.sees("No async tasks")


def test_a_key_in_the_environment_is_not_used_without_asking(talk: Talk, server: Model):
    terminal = talk(OPENAI_API_KEY="sk-secret", OPENAI_BASE_URL=server.url).ready()
    terminal.say("hello")
    terminal.sees("I am a script and know few words")
    assert server.asked == []


@pytest.mark.parametrize("name", ["nonsense", "no-such-provider:x"])
def test_a_model_that_nobody_knows(talk: Talk, name: str):
    terminal = talk("--model", name)
    assert terminal.end() == 1
    assert "cannot be used: " in terminal.text
    assert "Traceback" not in terminal.text


def test_the_scripted_agent_loads_no_framework():
    code = (
        "import sys; from meantime.app.verbs import chat;"
        "from meantime.surfaces.chat import chat_loop, scripted_agent;"
        "print('pydantic_ai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
