"""Real agents hand off work, and are told: how many times the model was asked is counted at the model.

A turn that launches asks the model twice, once for the call and once for the words after it. A turn that is
told asks once. There is nothing in between: nobody polls.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from cli.person import Person, running
from gates import open_gate

from .installed import (
    CLAUDE,
    CODEX,
    GEMINI,
    MEANTIME,
    OPENCODE,
    Agent,
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
    greet,
    needs,
    opencode_messages,
    opencode_session,
)
from .model import IDS, Asked, Model, script

pytestmark = pytest.mark.agents


@pytest.fixture
def model() -> Iterator[Model]:
    one = Model()
    yield one
    one.close()


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    one = Person(tmp_path)
    assert one("up").code == 0
    yield one
    one.leave()


@pytest.fixture(
    params=[
        pytest.param(ClaudeCode, marks=needs(CLAUDE)),
        pytest.param(OpenCode, marks=[needs(OPENCODE), pytest.mark.agents]),
    ]
)
def agent(request: pytest.FixtureRequest, person: Person, model: Model) -> ClaudeCode | OpenCode:
    made: ClaudeCode | OpenCode = request.param(person, model)
    made.install({ClaudeCode: "claude-code", OpenCode: "opencode"}[request.param])
    return made


def shell(agent: Agent, command: str, **more: object) -> dict[str, Any]:
    arguments = {"command": command, "description": "hand it off", **more}
    return {"tool": "Bash" if isinstance(agent, ClaudeCode) else "bash", "arguments": arguments}


def gate(person: Person) -> Path:
    path = person.folder / "gate"
    os.mkfifo(path)
    return path


def told(model: Model) -> list[str]:
    """The ids of the notices that the model saw in its last question, as often as it saw them."""
    return IDS.findall(model.turns[-1].text)


def turns(model: Model, count: int) -> None:
    until(
        lambda: len(model.turns) >= count,
        f"the model is asked {count} times",
        lambda: [asked.answer for asked in model.turns],
    )


def settled(person: Person) -> Any:
    """The conversation, when everything in it was told."""
    asking = person.daemon()

    def look() -> Any:
        threads = asking.get("/v1/threads")["threads"]
        done = threads and not any(one["active"] or one["unread"] or one["leased"] for one in threads)
        return threads if done else None

    return until(look, "all is told", lambda: asking.get("/v1/threads"))


def test_an_idle_agent_is_woken_by_the_ending(agent: ClaudeCode | OpenCode, person: Person, model: Model):
    held = gate(person)
    launch = shell(agent, f"{MEANTIME} run -q -n slow -c 'read line < {held}; echo forty-two'")
    with agent.session() as prompt:
        prompt(script(launch, {"text": "It runs."}, {"text": "I was told."}))
        turns(model, 2)
        until(lambda: _waits(agent, person), "somebody waits for the thread")
        assert len(model.turns) == 2
        open_gate(held)
        turns(model, 3)
        (thread,) = settled(person)
        task = person.json("ps", "-a")["tasks"][0]
    assert len(model.turns) == 3
    assert told(model) == [f"{task['id']}.1"]
    assert "forty-two" in model.turns[-1].text
    assert thread["id"].startswith("mcp-")


def _waits(agent: Agent, person: Person) -> bool:
    """Somebody waits for the thread of this agent."""
    threads = person.daemon().get("/v1/threads")["threads"]
    if isinstance(agent, OpenCode):
        return bool(threads) and any((person.home / "opencode").glob("ses_*"))
    return bool(threads) and bool(running(person.home, "wait", "--host", "claude-code"))


def _waiting_command(person: Person) -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes()
            if b"--tell" in words and str(person.home).encode() in (path / "environ").read_bytes():
                yield path.name


def test_a_busy_agent_is_told_at_its_next_step(agent: ClaudeCode | OpenCode, person: Person, model: Model):
    both = f"{MEANTIME} wait -q $({MEANTIME} run -q -n quick -c 'echo forty-two')"
    steps = [shell(agent, both), shell(agent, "sleep 1"), shell(agent, "sleep 1"), {"text": "Done."}]
    with agent.session() as prompt:
        prompt(script(*steps))
        turns(model, 4)
        settled(person)
        task = person.json("ps", "-a")["tasks"][0]
    assert told(model) == [f"{task['id']}.1"]
    # It saw it while it worked: Claude Code with the result of the call itself, OpenCode a step later.
    first = next(place for place, asked in enumerate(model.turns) if IDS.search(asked.text))
    assert first in ((1,) if isinstance(agent, ClaudeCode) else (1, 2, 3))


def test_an_agent_hands_off_through_mcp_and_is_woken(
    agent: ClaudeCode | OpenCode, person: Person, model: Model
):
    """Its MCP server and its hooks, or its plugin, find the same conversation."""
    held = gate(person)
    tool = "mcp__meantime__start" if isinstance(agent, ClaudeCode) else "meantime_start"
    start = {"tool": tool, "arguments": {"command": f"read line < {held}; echo forty-two"}}
    with agent.session() as prompt:
        before = greet(model, prompt, tool)
        prompt(script(start, {"text": "It runs."}, {"text": "I was told."}))
        turns(model, before + 2)
        until(lambda: _waits(agent, person), "somebody waits for the thread")
        open_gate(held)
        turns(model, before + 3)
        (thread,) = settled(person)
        task = person.json("ps", "-a")["tasks"][0]
    assert len(model.turns) == before + 3  # two that launch, one that is told, and no poll in between
    assert told(model) == [f"{task['id']}.1"]
    assert thread["id"].startswith("mcp-ses_" if isinstance(agent, OpenCode) else "mcp-")


@needs(OPENCODE)
def test_opencode_tells_the_session_at_the_root_where_all_have_one_thread(person: Person, model: Model):
    """As in an agent that is a task. What a subagent hands off through MCP belongs to the same thread; the
    subagent is idle, and is not told."""
    agent = OpenCode(person, model)
    agent.install("opencode")
    agent.environ["MEANTIME_THREAD"] = "conv-1"
    held = gate(person)
    launch = {"tool": "meantime_start", "arguments": {"command": f"read line < {held}; echo forty-two"}}
    with agent.served() as url:
        root, prompt = opencode_session(url)
        before = greet(model, prompt, "meantime_start")
        middle, _ = opencode_session(url, parentID=root)
        child, prompt = opencode_session(url, parentID=middle)
        prompt(script(launch, {"text": "It runs."}))
        turns(model, before + 2)
        until(lambda: _waits(agent, person), "somebody waits for the thread")
        open_gate(held)
        turns(model, before + 3)
        (thread,) = settled(person)
        task = person.json("ps", "-a")["tasks"][0]["id"]
        found = [IDS.findall(opencode_messages(url, session)) for session in (root, middle, child)]
    assert thread["id"] == "conv-1"
    assert found == [[f"{task}.1"], [], []]
    assert len(model.turns) == before + 3


@needs(CLAUDE)
def test_claude_code_is_told_when_it_resumes(person: Person, model: Model):
    claude = ClaudeCode(person, model)
    claude.install("claude-code")
    held = gate(person)
    with claude.session() as prompt:
        prompt(script(shell(claude, f"{MEANTIME} run -q -c 'read line < {held}'"), {"text": "It runs."}))
        turns(model, 2)
        until(lambda: _waits(claude, person), "somebody waits for the thread")
    session = person.daemon().get("/v1/threads")["threads"][0]["id"].removeprefix("mcp-")
    open_gate(held)
    task = person.json("ps", "-a")["tasks"][0]["id"]
    assert person("wait", "-q", task).code == 0
    with claude.session("--resume", session) as prompt:
        prompt(script({"text": "I am back."}))
        turns(model, 3)
        settled(person)
        prompt(script({"text": "And again."}))
        turns(model, 4)
    assert told(model) == [f"{task}.1"]
    assert len(model.turns) == 4


@needs(CLAUDE)
def test_claude_code_is_woken_by_its_own_background_command(person: Person, model: Model):
    """Without any hook: the blocking command is a background command of the host's own."""
    claude = ClaudeCode(person, model)
    held = gate(person)
    steps = [
        shell(claude, f"{MEANTIME} run -q -c 'read line < {held}; echo forty-two'"),
        shell(claude, f"{MEANTIME} wait --tell", run_in_background=True),
        {"text": "It runs."},
    ]
    with claude.session() as prompt:
        prompt(script(*steps))
        turns(model, 3)
        until(lambda: any(_waiting_command(person)), "its command waits")
        open_gate(held)
        turns(model, 4)
        settled(person)
    assert len(model.turns) == 4
    assert "<status>completed</status>" in model.turns[-1].text
    (output,) = re.findall(r"<output-file>(.*?)</output-file>", model.turns[-1].text)
    assert "forty-two" in Path(output).read_text()


OTHERS = [
    pytest.param(Codex, "codex", "exec_command", "cmd", marks=needs(CODEX)),
    pytest.param(Gemini, "gemini", "run_shell_command", "command", marks=needs(GEMINI)),
]


@pytest.mark.parametrize(("kind", "name", "tool", "argument"), OTHERS)
def test_codex_and_gemini_are_told_at_their_boundaries(
    person: Person, model: Model, kind: Any, name: str, tool: str, argument: str
):
    """They cannot be woken: what ends while they work is told at the end of a call, or of their turn, and
    what ends afterwards with the next prompt."""
    one = kind(person, model)
    one.install(name)
    asking, thread, ids = person.daemon(), "", []

    def end_a_task(asked: Asked) -> None:
        """While the model thinks, before the call and before what would be its last word."""
        nonlocal thread
        thread = thread or _thread(person, asked)
        if len(model.turns) in (1, 2):
            end_one()

    def end_one() -> None:
        task = asking.post("/v1/tasks", {"thread": thread, "command": "echo forty-two"})
        asking.get(f"/v1/tasks/{task['id']}/wait", timeout=LIMIT, patience=2 * LIMIT)
        ids.append(f"{task['id']}.1")

    model.before_answer = end_a_task
    one.turn(
        script({"tool": tool, "arguments": {argument: "true"}}, {"text": "Done."}, {"text": "I was told."})
    )
    settled(person)
    assert len(model.turns) == 3
    assert [len(seen(asked)) for asked in model.turns] == ([0, 0, 2] if kind is Gemini else [0, 1, 2])
    end_one()
    one.turn(script({"text": "I am back."}), again=True)
    settled(person)
    assert len(model.turns) == 4
    assert seen(model.turns[-1]) == ids


THROUGH_MCP = [
    pytest.param(
        Codex, "codex", {"tool": "start", "namespace": "mcp__meantime"}, id="codex", marks=needs(CODEX)
    ),
    pytest.param(Gemini, "gemini", {"tool": "mcp_meantime_start"}, id="gemini", marks=needs(GEMINI)),
]


@pytest.mark.parametrize(("kind", "name", "start"), THROUGH_MCP)
def test_codex_and_gemini_hand_off_through_mcp_and_are_told_by_a_hook(
    person: Person, model: Model, kind: Any, name: str, start: dict[str, Any]
):
    """What the MCP server started is told at the next prompt, though that server is gone by then."""
    one = kind(person, model)
    one.install(name)
    held = gate(person)
    start["arguments"] = {"command": f"read line < {held}; echo forty-two"}
    one.turn(script(start, {"text": "It runs."}))
    assert len(model.turns) == 2
    open_gate(held)
    task = person.json("ps", "-a")["tasks"][0]["id"]
    assert person("wait", "-q", task).code == 0
    one.turn(script({"text": "I am back."}), again=True)
    settled(person)
    assert len(model.turns) == 3
    assert seen(model.turns[-1]) == [f"{task}.1"]


@needs(CODEX)
def test_codex_has_our_tools_in_every_turn_of_a_busy_machine(person: Person, model: Model):
    """It asks its model as soon as it can, with the tools of the servers that are up by then. Three loops
    keep the machine busy, and our server is late by a second more, so that the test does not depend on how
    busy that makes it."""
    codex = Codex(person, model)
    codex.install("codex")
    late = person.folder / "late"
    late.write_text(f'#!/bin/sh\nsleep 1\nexec {MEANTIME} "$@"\n')
    late.chmod(0o700)
    config = Path(codex.environ["HOME"]) / ".codex/config.toml"
    config.write_text(config.read_text().replace(f'command = "{MEANTIME}"', f'command = "{late}"'))
    assert str(late) in config.read_text()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        for _ in range(5):
            codex.turn(script({"text": "Hello."}))
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    assert ["mcp__meantime" in asked.tools for asked in model.turns] == [True] * 5


def _thread(person: Person, asked: Asked) -> str:
    """As a hook finds it: the session is in the transcript, which is there by now."""
    (path,) = (person.folder / "user").rglob("*.jsonl")
    if ".gemini" in path.parts:
        return f"mcp-{json.loads(path.read_text().splitlines()[0])['sessionId']}"
    return f"mcp-{path.stem[-36:]}"


def seen(asked: Asked) -> list[str]:
    """The ids in one question, as often as they are there, however the agent has escaped them."""
    return IDS.findall(html.unescape(asked.text).replace('\\"', '"'))


# -- Gemini CLI over a resume: what each question to the model has


@pytest.fixture
def gemini(person: Person, model: Model) -> Gemini:
    one = Gemini(person, model)
    one.install("gemini")
    return one


def launched(person: Person) -> str:
    """The id of the notice of the newest task, which has ended."""
    task = person.json("ps", "-a")["tasks"][0]["id"]
    assert person("wait", "-q", task).code == 0
    return f"{task}.1"


def run_in_shell(line: str) -> dict[str, Any]:
    return {"tool": "run_shell_command", "arguments": {"command": f"{MEANTIME} run -q -c '{line}'"}}


@needs(GEMINI)
def test_gemini_has_every_notice_once_in_all_later_questions(gemini: Gemini, person: Person, model: Model):
    """And every prompt. The shell does not name the conversation: it is found by the process."""
    gate(person)
    gemini.turn(f"FIRST {script(run_in_shell(f'read x < {person.folder}/gate'), {'text': 'It runs.'})}")
    assert len(model.turns) == 2
    (person.folder / "gate").write_text("\n")
    ids = [launched(person)]
    for name in ("SECOND", "THIRD"):
        gemini.turn(f"{name} {script({'text': 'I am back.'})}", again=True)
    settled(person)
    assert [seen(asked) for asked in model.turns] == [[], [], ids, ids]
    assert [asked.text.count("FIRST") for asked in model.turns] == [1, 1, 1, 1]
    assert [asked.text.count("SECOND") for asked in model.turns] == [0, 0, 1, 1]


@needs(GEMINI)
@pytest.mark.parametrize("begin", ["Go on.", "? Is it done."])
def test_gemini_is_told_again_what_a_failed_turn_took_with_it(
    gemini: Gemini, person: Person, model: Model, begin: str
):
    """Gemini CLI takes a prompt whose turn failed out of its conversation, but not out of the file. A prompt
    that begins with `?` it forgets over a resume."""
    gemini.turn(script(run_in_shell("echo one"), {"text": "It runs."}, {"text": "It is done."}))
    ids = [launched(person)]
    asking, thread = person.daemon(), _thread(person, model.turns[0])
    task = asking.post("/v1/tasks", {"thread": thread, "command": "echo two"})["id"]
    asking.get(f"/v1/tasks/{task}/wait", timeout=LIMIT, patience=2 * LIMIT)
    ids.append(f"{task}.1")
    gemini.turn(f"{begin} {script({'error': 400})}", again=True, fails=True)
    gemini.turn(f"{begin} {script({'text': 'I am back.'}, {'text': 'I was told.'})}", again=True)
    gemini.turn(script({"text": "And again."}), again=True)
    settled(person)
    assert [seen(asked) for asked in model.turns[-2:]] == [ids, ids]


@needs(GEMINI)
def test_gemini_hears_of_no_hook_in_the_results_of_our_tools(gemini: Gemini, person: Person, model: Model):
    """Its MCP server learns from a hook whose call it is, and the call is not changed for that. What has
    ended is told by the hook alone: a result would be there twice after a resume."""
    start = {"tool": "mcp_meantime_start", "arguments": {"command": "echo forty-two"}}
    ids: list[str] = []

    def wait(asked: Asked) -> None:
        """The task has ended before the second call is made."""
        if len(model.turns) == 2:
            ids.append(launched(person))

    model.before_answer = wait
    listing = {"tool": "mcp_meantime_list", "arguments": {}}
    gemini.turn(script(start, listing, {"text": "Done."}, {"text": "I was told."}))
    gemini.turn(script({"text": "I am back."}), again=True)
    (thread,) = settled(person)
    assert thread["id"] == _thread(person, model.turns[0])
    assert [seen(asked) for asked in model.turns] == [[], [], [], ids, ids]
    assert "modified by a hook" not in model.turns[-1].text
    assert "meantime_session" not in model.turns[-1].text
