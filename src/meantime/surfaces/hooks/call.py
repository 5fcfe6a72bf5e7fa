"""What a host says when it runs a hook, and the form in which it wants the answer."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

from meantime.surfaces.cli.conversation import ARGUMENT, OURS, thread_of_session
from meantime.surfaces.cli.trouble import Trouble

HOSTS = ("claude-code", "codex", "gemini")
# Our names of the moments; the hosts' own are in what they say.
SESSION_START, PROMPT, POST_TOOL, STOP, WAIT = "session-start", "user-prompt", "post-tool", "stop", "wait"
PRE_TOOL = "pre-tool"  # before a call of our own MCP tools: nobody is told here
MOMENTS = (SESSION_START, PROMPT, PRE_TOOL, POST_TOOL, STOP, WAIT)
_NAMES = {
    SESSION_START: ("SessionStart", "SessionStart"),
    PROMPT: ("UserPromptSubmit", "BeforeAgent"),
    PRE_TOOL: ("PreToolUse", "BeforeTool"),
    POST_TOOL: ("PostToolUse", "AfterTool"),
    STOP: ("Stop", "AfterAgent"),
}


class Call(NamedTuple):
    moment: str
    host: str
    session: str
    thread: str
    transcript: str  # a path; empty where the host gives none
    event: str
    arguments: dict[str, Any]  # of the tool that it is about to call, or has called

    @property
    def named(self) -> str:
        """For Gemini CLI, whose MCP servers do not know the session: the call, with its name."""
        given = {**self.arguments, ARGUMENT: self.session}
        return json.dumps({"hookSpecificOutput": {"hookEventName": self.event, "tool_input": given}})

    @property
    def greeting(self) -> str:
        """For a host that does not tell its shell which conversation it is: the model is told."""
        if self.moment != SESSION_START or self.host != "gemini":
            return ""
        return (
            f"To run a slow command in the background: `meantime run --thread {self.thread} -- COMMAND`. "
            "Do not poll it; you are told when it has ended."
        )

    def answer(self, text: str) -> str:
        """For stdout: the text as the host puts it into the conversation."""
        if self.moment == STOP:
            goes_on = "deny" if self.host == "gemini" else "block"
            return json.dumps({"decision": goes_on, "reason": text})
        return json.dumps({"hookSpecificOutput": {"hookEventName": self.event, "additionalContext": text}})


def read(moment: str, host: str, said: bytes, environ: dict[str, str]) -> Call | None:
    """None where nobody is to be told: it is a subagent's, whose conversation is another one. Trouble where
    what came is not a hook's input."""
    try:
        found: Any = json.loads(said)
    except ValueError:
        raise Trouble("What came on stdin is not JSON, so nobody was told.") from None
    if not isinstance(found, dict):
        raise Trouble("What came on stdin is no JSON object, so nobody was told.")
    if "agent_id" in found:
        return None
    session: Any = found.get("session_id")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(session, str) or not session:
        raise Trouble("What came on stdin names no session_id, so nobody was told.")
    transcript: Any = found.get("transcript_path")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    event: Any = found.get("hook_event_name")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    given: Any = found.get("tool_input")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    names = _NAMES.get(moment, ("", ""))
    return Call(
        moment,
        host,
        session,
        environ.get(OURS) or thread_of_session(session),
        transcript if isinstance(transcript, str) else "",
        event if isinstance(event, str) and event else names[host == "gemini"],
        cast("dict[str, Any]", given) if isinstance(given, dict) else {},
    )
