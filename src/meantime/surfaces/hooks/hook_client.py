"""`meantime hook …`: what a coding agent runs at its own boundaries.

It must never be in the agent's way: it has two seconds, starts no daemon, and whatever goes wrong is a line
on stderr and exit 0. (Exit 2 means something to agents: only `wait` uses it, to wake one.)

The agent waits for this program, and a waiting one stays in memory. So it asks the daemon one question and
prints the answer, and imports nothing that a bare Python has to read from the disk: no pathlib, socket, json,
re or typing, each of which takes as long as all the rest.
"""

from __future__ import annotations

import os
import sys
import time

from meantime.daemon.home import BadHome, home
from meantime.surfaces.caller.caller_thread import OURS, thread_of_session

from . import hook_http
from .hook_events import (
    AGENTS,
    CLAUDE_CODE,
    CODEX,
    CURSOR,
    EVENTS,
    GEMINI,
    MOMENTS,
    PRE_TOOL,
    PROMPT,
    SESSION_START,
    STOP,
    WAIT,
    is_kept,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TextIO

BUDGET = 1.8  # seconds, in all
RETURN = 600.0  # seconds that a daemon which went away is waited for: it may be upgraded
PAUSE = 0.2  # seconds between two tries to reach it
WAKE = 2  # the exit code that wakes an idle agent
MOST = 16_000_000  # bytes of stdin: what a tool printed may be in it
# Whose process has one session after the other. Gemini CLI names it neither to its shell nor to its servers;
# Claude Code does, but not again to its servers when another one begins, as after /clear.
NOTED = (CLAUDE_CODE, GEMINI)
HEAD = b"MEANTIME_HOOK_HEAD"  # what the shell has read of stdin (surfaces/install/hook_lines.py)


class HookError(Exception):
    """Why nobody was told, as a sentence."""


def main(words: list[str]) -> int:
    """The exit code. `words` is what follows `meantime hook`."""
    try:
        moment, host = _call_of(words)
        said = _said(os.environb.get(HEAD, b"") + sys.stdin.buffer.read(MOST))
        if "agent_id" in said:
            return 0  # a subagent's conversation is another one
        call = HookCall(moment, host, said, os.environ)
        if moment == PRE_TOOL:
            _noted(call)
            _mark(call)
            return 0
        if host in NOTED and moment == SESSION_START:
            _noted(call)
        if call.forgets and moment != SESSION_START:
            return 0
        return _woken(call) if moment == WAIT else _told(call)
    except KeyboardInterrupt:
        return 0
    except Exception as problem:  # an agent's work is worth more than our notice, which is not lost
        return _nothing(problem)


class HookCall:
    """A host's input to a hook, and the form in which it wants the answer."""

    def __init__(self, moment: str, host: str, said: dict[str, Any], environ: Mapping[str, str]) -> None:
        name = "conversation_id" if host == CURSOR else "session_id"
        session = _text(said, name)
        if not session:
            raise HookError(f"The input on stdin names no {name}, so nobody was told.")
        self.moment = moment
        self.host = host
        self.session = session
        self.home = home(environ)
        self.thread = environ.get(OURS) or thread_of_session(session)
        # Nobody knows whether the transcript of Cursor has all that its model was told, and what is not in it
        # would be told for ever: its next hook is its word.
        path = "" if host == CURSOR else _text(said, "transcript_path")
        self._transcript = path or _database(host, environ)
        self._event = _text(said, "hook_event_name") or EVENTS.get(moment, ("", ""))[host == GEMINI]
        self._prompt = _text(said, "prompt")
        self._status = _text(said, "status")  # how a turn of Cursor ended
        # A server behind our wrap has a name of its own.
        self._server = f"{_text(said, 'mcp_server_name')} {_text(said, 'command')}".strip()
        self._input: Any = said.get("tool_input")
        context: Any = said.get("mcp_context")  # of Gemini CLI: there the tool has its server's own name
        self._tool = _text(context, "tool_name") or _text(said, "tool_name")

    @property
    def question(self) -> str:
        """For the daemon, as JSON."""
        asked = {"moment": self.moment, "session": self.session, "transcript": self._transcript}
        asked["host"] = self.host
        return "{" + ",".join(f'"{name}":{hook_http.quoted(value)}' for name, value in asked.items()) + "}"

    @property
    def forgets(self) -> bool:
        """Whether the host would not keep what it is told here. Gemini CLI puts what a SessionStart hook says
        before a prompt, and a prompt that begins so is gone, whole, when the session is resumed; and then it
        has the results of its tools twice, with all that AfterTool hooks have added to them. Cursor puts only
        what a `stop` hook says before its model; after a turn that somebody stopped, it does not go on."""
        if self.host == CURSOR:
            return self.moment != STOP or self._status not in ("completed", "")
        if self.host != GEMINI or self.moment == STOP:
            return False
        return self.moment != PROMPT or (bool(self._prompt) and not is_kept(self._prompt))

    def note(self) -> None:
        """For the shell and the MCP servers of an agent that does not tell them its session, or not again
        when another one begins."""
        if "meantime" not in (self._server or "meantime"):
            return  # Cursor runs its hook for the tools of every server
        import json  # at the start of a session, and before our own tools

        from meantime.surfaces.caller.agent_sessions import AgentSessions

        if self.moment == SESSION_START:
            AgentSessions().write(self.session)
            return
        given: Any = self._input
        if isinstance(given, str):  # as Cursor gives them
            given = json.loads(given)
        AgentSessions().write_call(self._tool, given, self.session)

    def answer(self, text: str) -> str:
        """For stdout: the text as the host puts it into the conversation."""
        quoted = hook_http.quoted(text)
        if self.host == CURSOR:
            return f'{{"followup_message": {quoted}}}'
        if self.moment == STOP and self.host != CLAUDE_CODE:  # that would show a reason twice
            goes_on = "deny" if self.host == GEMINI else "block"
            return f'{{"decision": "{goes_on}", "reason": {quoted}}}'
        event = hook_http.quoted(self._event)
        return f'{{"hookSpecificOutput": {{"hookEventName": {event}, "additionalContext": {quoted}}}}}'


def _noted(call: HookCall) -> None:
    """Without it the session may not be found; it is told of the others all the same."""
    try:
        call.note()
    except Exception as problem:
        _nothing(problem)


def _database(host: str, environ: Mapping[str, str]) -> str:
    """goose keeps all sessions in one, and names it nowhere."""
    if host != "goose":
        return ""
    from meantime.surfaces.caller.goose_sessions import database

    return database(environ)


def _call_of(words: list[str]) -> tuple[str, str]:
    moment, host, rest = "", AGENTS[0], iter(words)
    for word in rest:
        if word == "--host":
            host = next(rest, "")
        elif word.startswith("--host="):
            host = word[len("--host=") :]
        elif not moment and not word.startswith("-"):
            moment = word
    if moment not in MOMENTS or host not in AGENTS:
        raise HookError(f"There is no hook {moment!r} for {host!r}.")
    return moment, host


def _said(data: bytes) -> dict[str, Any]:
    try:
        found = hook_http.parsed(data.decode())
    except (ValueError, RecursionError):
        raise HookError("The input on stdin is not JSON, so nobody was told.") from None
    if found is None:
        raise HookError("The input on stdin is not a JSON object, so nobody was told.")
    return found


def _text(said: Any, name: str) -> str:
    if not isinstance(said, dict):
        return ""
    found: Any = said.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return found if isinstance(found, str) else ""


def _told(call: HookCall) -> int:
    until = time.monotonic() + BUDGET
    text, turn = "", ""
    try:
        _mark(call)
        if os.path.exists(call.home.http_address):
            text, turn, _ = hook_http.told(call.home.http_address, call.thread, call.question, until)
        else:
            _be_quiet(call)
    except Exception as problem:
        _nothing(problem)
    if text and not _printed(sys.stdout, call.answer(text)):
        _give_back(call, turn, time.monotonic() + BUDGET)
    return 0


def _woken(call: HookCall) -> int:
    """In the background of an agent that has ended its turn. It may be there for hours."""
    if not os.path.exists(call.home.http_address):
        return 0
    if call.host == CODEX:
        from . import codex_queue

        return codex_queue.wake_later(call.session, lambda is_wanted: _waited(call, is_wanted)[0])
    from meantime.system.output_reader import is_read

    parent = os.getppid()
    text, turn = _waited(call, lambda: os.getppid() == parent and is_read())
    if text and _printed(sys.stderr, text):
        return WAKE
    if text:
        _give_back(call, turn, time.monotonic() + BUDGET)
    return 0


def _waited(call: HookCall, is_wanted: Callable[[], bool]) -> tuple[str, str]:
    """The text that wakes the agent, and the turn that holds it; empty where nothing is left to wait for, or
    nobody wants it any more."""
    until = time.monotonic() + RETURN
    while is_wanted():
        try:
            text, turn, over = hook_http.told(
                call.home.http_address, call.thread, call.question, None, is_wanted
            )
            until = time.monotonic() + RETURN
        except hook_http.DaemonGone:
            if time.monotonic() > until:
                raise
            time.sleep(PAUSE)
            continue
        if text or over:
            return text, turn
    return "", ""


def _give_back(call: HookCall, turn: str, until: float) -> None:
    """It could not be printed."""
    if turn:
        hook_http.request(call.home.http_address, f"/v1/turns/{turn}/release", "{}", until)


def _mark(call: HookCall) -> None:
    """This conversation has hooks. The process that serves its MCP tools looks for the file
    (surfaces/hooks/shown_notices.py): then it is told here, and not a second time there."""
    place = os.path.dirname(call.home.http_address)
    if call.moment == SESSION_START:
        os.makedirs(place, 0o700, exist_ok=True)
    if "/" in call.thread or not os.path.isdir(place):
        return
    folder = f"{place}/hooks"
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
    os.utime(_made(f"{folder}/{call.thread}"))


def _be_quiet(call: HookCall) -> None:
    """Without a daemon there is nothing to tell: until one comes, the next hook need not ask
    (surfaces/hooks/quiet_files.py). One that starts removes these files when its socket is there, so a file
    that was made before that goes with the others; one that may have come too late goes now."""
    folder = f"{os.path.dirname(call.home.http_address)}/quiet"
    if "/" in call.thread or not os.path.isdir(os.path.dirname(folder)):
        return
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700, exist_ok=True)
    path = _made(f"{folder}/{call.thread}")
    if os.path.exists(call.home.http_address):
        os.unlink(path)


def _made(path: str) -> str:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    return path


def _printed(stream: TextIO, text: str) -> bool:
    try:
        stream.write(f"{text}\n")
        stream.flush()
    except OSError:
        # Else the interpreter complains at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True


def _nothing(problem: Exception) -> int:
    known = isinstance(problem, (HookError, BadHome, hook_http.DaemonGone, hook_http.DaemonRefused))
    why = str(problem) if known else f"{type(problem).__name__}: {problem}"
    _printed(sys.stderr, f"meantime hook: {why}")
    return 0
