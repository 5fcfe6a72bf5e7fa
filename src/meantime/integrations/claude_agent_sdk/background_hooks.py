"""Background work for a Claude agent: tools of a server in this process, and hooks that tell what ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    HookContext,
    HookInput,
    HookJSONOutput,
    HookMatcher,
    McpSdkServerConfig,
    SdkMcpTool,
    create_sdk_mcp_server,
)

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.conversation.turn import Turn
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, DeclaredTool, Function, TalkTools
from meantime.kernel.errors import InvalidInput
from meantime.kernel.notices import Notice
from meantime.kernel.work import Orderable
from meantime.thread import Thread

from .orphan_runs import end_orphans, guard_runs, owner_mark
from .session_transcript import entries, joined, told_in_transcript

SERVER = "meantime"
WRITE_TRIES, WRITE_PAUSE = 40, 0.05  # looks, and seconds between them


class Background:
    """`ClaudeAgentOptions(**background.options())`, for a client or a query of your own.

    Each prompt tells what has ended meanwhile, in order, once; so does each step between two requests to the
    model, and the end of its answer, which then goes on. The arguments are those of `Talk`.
    """

    def __init__(
        self,
        thread: Thread,
        *functions: Function,
        agents: Sequence[str] | Mapping[str, str] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        threshold: float | str | None = THRESHOLD,
        dialect: Wording = OWN,
    ) -> None:
        self._tools = TalkTools(
            thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect
        )
        self._turn: Turn | None = None
        self._looking: Future[None] | None = None  # for what a killed owner has left running

    def options(self, **given: Any) -> dict[str, Any]:
        """Arguments for ClaudeAgentOptions: yours, with the tools and the hooks of this thread among them.

        Claude Code that a killed process has left running with them is ended: before this returns, or, where
        an event loop runs, in a thread, before the first prompt is taken.
        """
        of = self._tools.thread.id
        self._look(of)
        guard_runs()
        env: dict[str, str] = {**(given.get("env") or {}), **owner_mark(of)}
        return merged({**given, "env": env}, self._tools, self._hooks())

    def _look(self, of: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            end_orphans(of)
            return
        thread = ThreadPoolExecutor(1)
        self._looking = thread.submit(end_orphans, of)
        thread.shutdown(wait=False)

    def _hooks(self) -> dict[str, Callable[[Any], Any]]:
        return {
            "UserPromptSubmit": self._prompted,
            "PostToolUse": self._between,
            "PostToolUseFailure": self._between,
            "Stop": self._stopped,
        }

    async def _prompted(self, given: HookInput) -> str:
        if self._looking is not None:
            await asyncio.wrap_future(self._looking)
            self._looking = None
        await self._leave(failed=True)  # one that an error has cut off does not come to its end
        turn = self._turn = await self._tools.thread.turn().open()
        self._tools.verbs.begin(turn)
        fresh = turn.fresh(_told(given))
        return "\n\n".join(filter(None, (told(fresh), await turn.reminder())))

    async def _between(self, given: HookInput) -> str:
        if self._turn is None:
            return ""
        came = await self._turn.boundary()
        held = _told(given) if came else set[str]()
        return told([notice for notice in came if notice.id not in held])

    async def _stopped(self, given: HookInput) -> str:
        more = await self._between(given)
        if not more and self._turn is not None:
            expected = {notice.id for notice in self._turn.fresh()}
            held = await _written(expected, given)
            if expected <= held:
                await self._turn.ack()
            elif expected & held:  # the others are looked for again at the next prompt
                await self._turn.ack(*(expected & held))
            await self._leave()
        return more

    async def _leave(self, *, failed: bool = False) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._tools.verbs.begin(None)
            await turn.close(failed=failed)


def told(notices: Sequence[Notice]) -> str:
    return joined({notice.id: notice.message().text for notice in notices}) if notices else ""


async def _written(expected: set[str], given: HookInput) -> set[str]:
    """The notices in the transcript, which Claude Code writes a little later than it calls its hooks."""
    for _ in range(WRITE_TRIES):
        held = _told(given)
        if expected <= held:
            return held
        await asyncio.sleep(WRITE_PAUSE)
    return _told(given)


def _told(given: HookInput) -> set[str]:
    return told_in_transcript(entries(Path(given["transcript_path"])))


def merged(
    given: Mapping[str, Any], tools: TalkTools, hooks: Mapping[str, Callable[[Any], Any]]
) -> dict[str, Any]:
    """Options with a server of tools, leave to call them, and hooks, beside those that are given."""
    servers: Any = given.get("mcp_servers") or {}
    if not isinstance(servers, Mapping):
        raise InvalidInput(
            "mcp_servers is a file or a text, to which no server can be added.",
            hint="Give the servers as a dictionary.",
        )
    every: dict[str, list[HookMatcher]] = {**(given.get("hooks") or {})}
    for event, hook in hooks.items():
        every[event] = [*every.get(event, ()), HookMatcher(hooks=[_callback(event, hook)])]
    return {
        **given,
        "mcp_servers": {**servers, SERVER: tool_server(tools)},
        "allowed_tools": [*(given.get("allowed_tools") or ()), f"mcp__{SERVER}"],
        "hooks": every,
    }


def _callback(event: str, hook: Callable[[Any], Any]) -> Callable[..., Any]:
    async def called(given: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        if given.get("agent_id"):  # a subagent works here: the conversation is elsewhere
            return {}
        text = await hook(given)
        if not text:
            return {}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}  # pyright: ignore[reportReturnType]

    return called


def tool_server(tools: TalkTools) -> McpSdkServerConfig:
    return create_sdk_mcp_server(SERVER, tools=[_tool(tool, tools) for tool in tools.declare()])


def _tool(tool: DeclaredTool, tools: TalkTools) -> SdkMcpTool[Any]:
    async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await tools.answer(tool.name, arguments, None)
        return {"content": [{"type": "text", "text": answer.text}], "is_error": answer.is_error}

    empty: dict[str, Any] = {
        "type": "object",
        "properties": {},
    }  # without them it takes it for something else
    return SdkMcpTool(tool.name, tool.description, empty | tool.schema, handle)
