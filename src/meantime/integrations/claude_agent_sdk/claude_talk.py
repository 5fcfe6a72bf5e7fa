"""A Claude agent of the Claude Agent SDK that talks: it hands work off, is told once, and is woken when idle.

The session of Claude Code is the conversation. A notice is a block of a prompt there, or the context of a
hook, and its text names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultError, ResultMessage

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.framework_talk import FrameworkTalk
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .background_hooks import merged, told
from .orphan_runs import end_orphans, guard_runs, owner_mark
from .session_transcript import (
    ends_unanswered,
    ends_with_notices,
    entries,
    told_in_transcript,
    transcript_path,
)

GO_ON = "Continue from where you left off."


class Talk(FrameworkTalk):
    """One conversation: `say` takes a turn, `woken` gives what the agent says by itself.

    Each turn is a run of Claude Code that resumes the session, so nothing runs between turns.

    options: those of the agent. Their `resume` or `session_id` names the session.
    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    session: the session's id, a UUID. Without one, it follows from the thread's id and the working folder; a
        restart goes on with it and tells nothing twice.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        thread: Thread,
        *functions: Function,
        session: str | None = None,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        _check(options)
        super().__init__(
            TalkTools(
                thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
            )
        )
        self._options = options
        own = str(uuid5(NAMESPACE_URL, f"meantime:{options.cwd or ''}:{thread.id}"))
        self.session = _uuid(session or options.resume or options.session_id or own)
        self._entries: list[dict[str, Any]] = []  # of the transcript, as it was read last
        self._has_looked = False  # for what a killed owner of the session has left running

    async def _kept(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._read)

    def _read(self) -> list[dict[str, Any]]:
        if not self._has_looked:
            end_orphans(self.session)
            guard_runs()
            self._has_looked = True
        return entries(transcript_path(self.session, self._options.env))

    async def _told(self) -> Collection[str]:
        self._entries = await self._kept()
        return told_in_transcript(self._entries)

    async def _unanswered(self) -> bool:
        return ends_unanswered(self._entries)

    async def _take(self, turn: Turn, fresh: Sequence[Notice], text: str | None, run: dict[str, Any]) -> Any:
        options = replace(self._options, **run)
        if ends_with_notices(self._entries) and (fresh or text is not None):
            # Claude Code would put them behind what is said next, so they are answered first.
            await self._run(options, [GO_ON], {})
        blocks = [notice.message().text for notice in fresh]
        if text is not None:
            blocks.append(text)
        return await self._run(options, blocks or [GO_ON], self._hooks(turn), composed=bool(fresh))

    async def _run(
        self,
        options: ClaudeAgentOptions,
        blocks: Sequence[str],
        hooks: Mapping[str, Callable[[Any], Any]],
        *,
        composed: bool = False,
    ) -> Any:
        exists = transcript_path(self.session, options.env) is not None
        options = replace(
            options,
            resume=self.session if exists else None,
            session_id=None if exists else self.session,
            env={**options.env, **owner_mark(self.session)},
        )
        given = {field.name: getattr(options, field.name) for field in fields(options)}
        hooked = ClaudeAgentOptions(**merged(given, self._tools, hooks))
        ended = await _ended(hooked, prompt(blocks, composed=composed))
        return ended.result if ended.structured_output is None else ended.structured_output

    def _hooks(self, turn: Turn) -> dict[str, Callable[[Any], Any]]:
        """None at `Stop`: Claude Code would go on with what ends beside its answer, and its result would be
        the words about that alone. So it is left for the next turn, and `say` gives the answer."""

        async def prompted(given: Any) -> str:
            return await turn.reminder()

        async def between(given: Any) -> str:
            return told(await self._came_in(turn))

        return {
            "UserPromptSubmit": prompted,
            "PostToolUse": between,
            "PostToolUseFailure": between,
        }


async def prompt(blocks: Sequence[str], *, composed: bool) -> AsyncIterator[dict[str, Any]]:
    """One message of the user. composed: it has text of tasks, in which `@path` reads no file."""
    content = [{"type": "text", "text": text} for text in blocks]
    message = {"role": "user", "content": content}
    yield {"type": "user", "message": message, "parent_tool_use_id": None, "client_composed": composed}


async def _ended(options: ClaudeAgentOptions, given: AsyncIterator[dict[str, Any]]) -> ResultMessage:
    """Runs Claude Code until it has answered, and has gone: it has written its transcript then."""
    found: ResultMessage | None = None
    async with ClaudeSDKClient(options) as client:
        await client.query(given)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                found = message
    if found is None:
        raise ResultError("Claude Code ended without a result.")
    if found.is_error:
        said = found.result or "; ".join(found.errors or ()) or found.subtype
        raise ResultError(said, {"subtype": found.subtype, "result": found.result})
    return found


def _check(options: object) -> None:
    if not isinstance(options, ClaudeAgentOptions):
        what = f"{options!r:.100} are not ClaudeAgentOptions."
        raise InvalidInput(what, hint="The options come first: Talk(ClaudeAgentOptions(…), thread, …).")
    if options.continue_conversation or options.fork_session:
        raise InvalidInput(
            "A Talk stays in one session of Claude Code.",
            hint="Leave continue_conversation and fork_session out; name the session with session=.",
        )
    if options.session_store is not None:
        raise InvalidInput(
            "A Talk looks for notices in the transcript that Claude Code writes itself.",
            hint="Leave session_store out.",
        )


def _uuid(session: str) -> str:
    try:
        return str(UUID(session))
    except ValueError as problem:
        raise InvalidInput(f"The session {session!r:.100} is not a UUID.") from problem
