"""Coding agents as a person has them: on a terminal. One row for each says how it is started and read.

agent        idle, when work ends       class    subagents
claude-code  takes a turn of its own    B        told: the root session
opencode     takes a turn of its own    B        told: the root session
codex        takes a turn of its own    B        told: the root session
gemini       told with the next prompt  B        told: the root session
goose        told with the next prompt  C        told: the root session
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cli.person import Person

from .installed import (
    CLAUDE,
    CODEX,
    GEMINI,
    GOOSE,
    OPENCODE,
    Agent,
    ClaudeCode,
    Codex,
    Gemini,
    Goose,
    OpenCode,
)
from .model import Model
from .window import Window

Step = dict[str, Any]


class Host(NamedTuple):
    """What one kind of agent is called and how it is driven."""

    name: str  # as `meantime install` has it
    package: str  # on npm
    program: Path
    kind: type[Agent]
    wakes: bool  # a session that is idle takes a turn of its own
    wakes_on_restart: bool  # and does so when it comes back and work has ended in between
    told_at_the_end: bool  # of the next turn, with a question of its own; otherwise with the next prompt
    words: tuple[str, ...]  # that start it on a terminal
    again: tuple[str, ...]  # and that go on with the last session
    once: tuple[str, ...]  # that start it without a terminal, for one prompt
    ready: str  # a pattern: the screen, when a prompt can be typed
    works: str  # a pattern: the screen while it works
    shell: tuple[str, str]  # the tool that runs a command, and its argument
    start: Step  # the call of our own MCP tool that starts a command
    subagent: Step  # the call that starts a subagent, which is given PROMPT

    def runs(self, command: str) -> Step:
        """The model's call of the shell."""
        tool, argument = self.shell
        more = {} if self.name in ("codex", "goose") else {"description": "hand it off"}
        return {"tool": tool, "arguments": {argument: command, **more}}

    def starts(self, command: str) -> Step:
        """The model's call of our MCP tool."""
        return {**self.start, "arguments": {"command": command}}

    def delegates(self, prompt: str) -> Step:
        """The model's call that starts a subagent."""
        return json.loads(json.dumps(self.subagent).replace("PROMPT", prompt))

    @contextlib.contextmanager
    def opened(self, agent: Agent, *more: str) -> Iterator[Window]:
        """It runs on a terminal, and a prompt can be typed."""
        window = Window([self.program, *self.words, *more], agent.environ, agent.project)
        try:
            window.until(self.ready)
            yield window
        finally:
            window.close()


class ClaudeCodeTerminal(ClaudeCode):
    """It has been asked for its theme, its key and the folder before."""

    def __init__(self, person: Person, model: Model) -> None:
        super().__init__(person, model)
        path = Path(self.environ["HOME"]) / ".claude.json"
        key = self.environ["ANTHROPIC_API_KEY"][-20:]
        known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answers = {
            "hasCompletedOnboarding": True, "theme": "dark", "projects": {str(self.project): known},
            "customApiKeyResponses": {"approved": [key], "rejected": []},
        }  # fmt: skip
        path.write_text(json.dumps(answers))


HOSTS = (
    Host(
        name="claude-code", package="@anthropic-ai/claude-code", program=CLAUDE, kind=ClaudeCodeTerminal,
        wakes=True, wakes_on_restart=False, told_at_the_end=False,
        ready="❯", works="esc to interrupt",
        words=("--permission-mode=default", "--allowedTools=Bash,Agent,mcp__meantime"), again=("--continue",),
        once=("--allowedTools=Bash,Agent,mcp__meantime", "-p"),
        shell=("Bash", "command"), start={"tool": "mcp__meantime__start"},
        subagent={"tool": "Agent", "arguments": {
            "description": "does it", "prompt": "PROMPT", "subagent_type": "general-purpose",
        }},
    ),
    Host(
        name="opencode", package="opencode-linux-x64", program=OPENCODE, kind=OpenCode,
        wakes=True, wakes_on_restart=True, told_at_the_end=False,
        ready="ctrl\\+p commands", works="esc interrupt",
        words=(), again=("--continue",), once=("run",),
        shell=("bash", "command"), start={"tool": "meantime_start"},
        subagent={"tool": "task", "arguments": {
            "description": "does it", "prompt": "PROMPT", "subagent_type": "general",
        }},
    ),
    Host(
        name="codex", package="@openai/codex", program=CODEX, kind=Codex,
        wakes=True, wakes_on_restart=False, told_at_the_end=False,
        ready="Ask Codex to do anything", works="esc to interrupt",
        words=("--dangerously-bypass-hook-trust",), again=("resume", "--last"),
        once=("exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"),
        shell=("exec_command", "cmd"),
        start={"tool": "start", "namespace": "mcp__meantime"},
        subagent={"tool": "spawn_agent", "namespace": "multi_agent_v1", "arguments": {"message": "PROMPT"}},
    ),
    Host(
        name="gemini", package="@google/gemini-cli", program=GEMINI, kind=Gemini,
        wakes=False, wakes_on_restart=False, told_at_the_end=False,
        ready="Type your message", works="esc to cancel",
        words=("-y", "-m", "gemini-2.5-flash"), again=("--resume", "latest"),
        once=("-y", "-m", "gemini-2.5-flash", "-p"),
        shell=("run_shell_command", "command"), start={"tool": "mcp_meantime_start"},
        subagent={"tool": "invoke_agent", "arguments": {"agent_name": "generalist", "prompt": "PROMPT"}},
    ),
    Host(
        name="goose", package="@aaif/goose-binary-linux-x64", program=GOOSE, kind=Goose,
        wakes=False, wakes_on_restart=False, told_at_the_end=True,
        ready="Enter to send", works="esc to cancel|Ctrl\\+C to",
        words=("session",), again=("--resume",), once=("run", "--with-builtin", "developer", "-t"),
        shell=("shell", "command"), start={"tool": "meantime_tasks__start"},
        subagent={"tool": "delegate", "arguments": {"instructions": "PROMPT"}},
    ),
)  # fmt: skip
