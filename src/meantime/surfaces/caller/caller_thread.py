"""Which conversation this call belongs to: what an agent says of itself to the programs that it starts."""

from __future__ import annotations

import os

from . import goose_sessions

TYPE_CHECKING = False  # to load `typing` takes 2 ms, `re` as much, and a hook of an agent loads this file
if TYPE_CHECKING:
    from collections.abc import Mapping

OURS = "MEANTIME_THREAD"
TASK = "MEANTIME_TASK"  # in the environment of every agent and command that is a task
# How agents call their own conversation. A subagent of Codex has a thread of its own, which nobody tells
# anything once it has ended; the session is the person's, and its hooks name the same one.
THEIRS = (
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_SESSION_ID",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "GEMINI_SESSION_ID",
    "CURSOR_CONVERSATION_ID",
)
GEMINI = "GEMINI_CLI"  # in the shell of Gemini CLI, which does not name its session there
GOOSE = "AGENT_SESSION_ID"  # how goose calls it, in its shell and its MCP servers
PERSON = "cli"  # somebody at a shell
MOST_ID = 128  # characters
ARGUMENT = "meantime_session"  # of a tool call: so a plugin or a hook tells our MCP server whose it is
# In a call's _meta: so Codex names who calls, and the session that this belongs to. A subagent of Codex calls
# under a name of its own, and nobody tells it anything once it has ended; the session is the person's.
META_CALLER, META_SESSION = "threadId", "sessionId"
_STRANGE = "\0"  # stands for a run of characters that an id cannot have


def named(text: str) -> str:
    """A thread's id from a name that others gave."""
    return _marked(text).replace(_STRANGE, "-")[:100].strip("-") or "mcp"


def _marked(text: str) -> str:
    made = ""
    for one in text:
        if one.isascii() and (one.isalnum() or one in "._:-"):
            made += one
        elif not made.endswith(_STRANGE):
            made += _STRANGE
    return made


def thread_of_session(session: str) -> str:
    """The thread of an agent's conversation: its MCP server, its hooks and its shell find the same one."""
    return f"mcp-{named(session)}"


def session_of(environ: Mapping[str, str]) -> str:
    """The conversation of the agent that started us, in its own words; empty for none."""
    said = next((environ[name] for name in THEIRS if environ.get(name)), "")
    return said or (_goose_session(environ) if environ.get(GOOSE) else "")


def _goose_session(environ: Mapping[str, str]) -> str:

    return goose_sessions.root(environ[GOOSE], environ)


def own_thread(environ: Mapping[str, str] = os.environ) -> str:
    """The environment decides, then the agent that started us; otherwise it is a person."""
    if environ.get(OURS):
        return environ[OURS]
    session = session_of(environ) or (_session_above(environ) if environ.get(GEMINI) else "")
    return thread_of_session(session) if session else PERSON


def _session_above(environ: Mapping[str, str]) -> str:
    """The thread of an agent that tells its shell no more than that it is there."""
    from .agent_sessions import AgentSessions

    return AgentSessions(environ).session()


def own_task(environ: Mapping[str, str] = os.environ) -> str | None:
    """The task that this process works for: what it starts is a child of it. A text that is not an id is
    nobody's.
    """
    said = environ.get(TASK, "")
    return said if said and _STRANGE not in _marked(said) and len(said) <= MOST_ID else None
