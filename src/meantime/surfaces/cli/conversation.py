"""Which conversation this call belongs to: what an agent says of itself to the programs that it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

OURS = "MEANTIME_THREAD"
TASK = "MEANTIME_TASK"  # in the environment of every agent and command that is a task
# How agents call their own conversation.
THEIRS = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID")
PERSON = "cli"  # somebody at a shell
MOST_ID = 128  # characters
ARGUMENT = "meantime_session"  # of a tool call: so a plugin or a hook tells our MCP server whose it is
_STRANGE = re.compile(r"[^A-Za-z0-9._:-]+")


def named(text: str) -> str:
    """A thread's id from a name that others gave."""
    return _STRANGE.sub("-", text)[:100].strip("-") or "mcp"


def thread_of_session(session: str) -> str:
    """The thread of an agent's conversation: its MCP server, its hooks and its shell find the same one."""
    return f"mcp-{named(session)}"


def session_of(environ: Mapping[str, str]) -> str:
    """The conversation of the agent that started us, in its own words; empty for none."""
    return next((environ[name] for name in THEIRS if environ.get(name)), "")


def own_thread(environ: Mapping[str, str] = os.environ) -> str:
    """What the environment says, else the agent that started us, else a person."""
    if environ.get(OURS):
        return environ[OURS]
    session = session_of(environ)
    return thread_of_session(session) if session else PERSON


def own_task(environ: Mapping[str, str] = os.environ) -> str | None:
    """The task that this process works for: what it starts is a child of it. What is no id is nobody's."""
    said = environ.get(TASK, "")
    return said if said and not _STRANGE.search(said) and len(said) <= MOST_ID else None
