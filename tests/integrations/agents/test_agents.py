"""Real agents hand off work, and are told: how many times the model was asked is counted at the model.

A turn that launches asks the model twice, once for the call and once for the words after it. A turn that is
told asks once. There is nothing in between: nobody polls.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.person import Person, eventually
from meantime.surfaces.hooks.shown import Busy, locked

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
    needs,
    opencode_messages,
    opencode_session,
)
from .model import Asked, Model, script

IDS = re.compile(r'<task-notification id="([^"]+)"')


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
    params=[pytest.param(ClaudeCode, marks=needs(CLAUDE)), pytest.param(OpenCode, marks=needs(OPENCODE))]
)
def agent(request: pytest.FixtureRequest, person: Person, model: Model) -> Agent:
    made: Agent = request.param(person, model)
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
    eventually(lambda: len(model.turns) >= count, lambda: str([asked.answer for asked in model.turns]))


def settled(person: Person) -> Any:
    """The conversation, when everything in it was told."""
    asking = person.daemon()

    def look() -> Any:
        threads = asking.get("/v1/threads")["threads"]
        done = threads and not any(one["active"] or one["unread"] or one["leased"] for one in threads)
        return threads if done else None

    return eventually(look, lambda: str(asking.get("/v1/threads")))


def test_an_idle_agent_is_woken_by_the_ending(agent: Agent, person: Person, model: Model):
    held = gate(person)
    launch = shell(agent, f"{MEANTIME} run -q -n slow -c 'read line < {held}; echo forty-two'")
    with agent.session() as prompt:
        prompt(script(launch, {"text": "It runs."}, {"text": "I was told."}))
        turns(model, 2)
        eventually(lambda: _waits(agent, person))
        assert len(model.turns) == 2
        held.write_text("\n")
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
        return bool(threads) and any(_waiting_command(person))
    for thread in threads:
        with suppress(Busy), locked(person.home, thread["id"], "waiting", 0):
            return False
    return bool(threads)


def _waiting_command(person: Person) -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes()
            if b"--tell" in words and str(person.home).encode() in (path / "environ").read_bytes():
                yield path.name


def test_a_busy_agent_is_told_at_its_next_step(agent: Agent, person: Person, model: Model):
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


def test_an_agent_hands_off_through_mcp_and_is_woken(agent: Agent, person: Person, model: Model):
    """Its MCP server and its hooks, or its plugin, find the same conversation."""
    held = gate(person)
    tool = "mcp__meantime__start" if isinstance(agent, ClaudeCode) else "meantime_start"
    start = {"tool": tool, "arguments": {"command": f"read line < {held}; echo forty-two"}}
    with agent.session() as prompt:
        prompt(script({"text": "Hello."}))  # its servers are started with the session, and take their time
        turns(model, 1)
        eventually(lambda: person.info()["clients"])
        prompt(script(start, {"text": "It runs."}, {"text": "I was told."}))
        turns(model, 3)
        eventually(lambda: _waits(agent, person))
        held.write_text("\n")
        turns(model, 4)
        (thread,) = settled(person)
        task = person.json("ps", "-a")["tasks"][0]
    assert len(model.turns) == 4  # two that launch, one that is told, and no poll in between
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
        prompt(script({"text": "Hello."}))
        turns(model, 1)
        eventually(lambda: person.info()["clients"])
        middle, _ = opencode_session(url, parentID=root)
        child, prompt = opencode_session(url, parentID=middle)
        prompt(script(launch, {"text": "It runs."}))
        turns(model, 3)
        eventually(lambda: _waits(agent, person))
        held.write_text("\n")
        turns(model, 4)
        (thread,) = settled(person)
        task = person.json("ps", "-a")["tasks"][0]["id"]
        found = [IDS.findall(opencode_messages(url, session)) for session in (root, middle, child)]
    assert thread["id"] == "conv-1"
    assert found == [[f"{task}.1"], [], []]
    assert len(model.turns) == 4


@needs(CLAUDE)
def test_claude_code_is_told_when_it_resumes(person: Person, model: Model):
    claude = ClaudeCode(person, model)
    claude.install("claude-code")
    held = gate(person)
    with claude.session() as prompt:
        prompt(script(shell(claude, f"{MEANTIME} run -q -c 'read line < {held}'"), {"text": "It runs."}))
        turns(model, 2)
        eventually(lambda: _waits(claude, person))
    session = person.daemon().get("/v1/threads")["threads"][0]["id"].removeprefix("mcp-")
    held.write_text("\n")
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
        eventually(lambda: any(_waiting_command(person)))
        held.write_text("\n")
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
        asking.get(f"/v1/tasks/{task['id']}/wait", timeout=30, patience=60)
        ids.append(f"{task['id']}.1")

    model.before_answer = end_a_task
    one.turn(
        script({"tool": tool, "arguments": {argument: "true"}}, {"text": "Done."}, {"text": "I was told."})
    )
    settled(person)
    assert len(model.turns) == 3
    assert [len(IDS.findall(_unescaped(asked.text))) for asked in model.turns] == [0, 1, 2]
    end_one()
    one.turn(script({"text": "I am back."}), again=True)
    settled(person)
    assert len(model.turns) == 4
    seen = IDS.findall(_unescaped(model.turns[-1].text))
    assert set(seen) == set(ids)
    assert seen.count(ids[-1]) == 1  # of the others not: Gemini CLI replays each tool's result twice


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
    held.write_text("\n")
    task = person.json("ps", "-a")["tasks"][0]["id"]
    assert person("wait", "-q", task).code == 0
    one.turn(script({"text": "I am back."}), again=True)
    settled(person)
    assert len(model.turns) == 3
    assert IDS.findall(_unescaped(model.turns[-1].text)) == [f"{task}.1"]


def _thread(person: Person, asked: Asked) -> str:
    """As a hook finds it: the session is in the name of the transcript, which is there by now."""
    greeted = re.search(r"--thread (mcp-\S+)", asked.text)
    if greeted:
        return greeted[1]
    (path,) = (person.folder / "user/.codex/sessions").rglob("*.jsonl")
    return f"mcp-{path.stem[-36:]}"


def _unescaped(text: str) -> str:
    return html.unescape(text).replace('\\"', '"')
