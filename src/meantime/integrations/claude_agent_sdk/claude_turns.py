"""Turns of a Claude agent: each is a run of Claude Code, reported as it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    ToolPermissionContext,
    UserMessage,
)

from meantime.integrations.agent_host.host_errors import failed, raised
from meantime.integrations.framework_talk.framework_turns import FrameworkTurn, FrameworkTurns
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Line
from meantime.kernel.model import Failed
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.provider_errors import judge
from meantime.kernel.questions import permission
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from .claude_lines import ClaudeLines
from .claude_talk import GO_ON
from .orphan_runs import end_orphans, guard_runs, owner_mark
from .session_record import ClaudeSession, forked, read_record, write_record
from .session_transcript import config_folder, entries, last_prompt
from .tool_choice import chosen_tools

LONGEST_GOODBYE = 10.0  # seconds that an interrupt may take
LONGEST_ECHO = 10.0  # seconds after an answer in which a message that came too late for it is answered


class ClaudeTurns(FrameworkTurns["ClaudeTurn"]):
    """Its sessions are Claude Code's; a file of ours says which."""

    def begin(self, path: Path) -> None:
        write_record(path, ClaudeSession())

    def fork(self, path: Path, copy: Path) -> None:
        write_record(copy, forked(read_record(path)))

    def lines(self, path: Path) -> Sequence[Line]:
        return list(ClaudeLines().of_transcript(entries(read_record(path).begun)))

    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> ClaudeTurn:
        return ClaudeTurn(agent, path, prompt, brief, hearer)


class ClaudeTurn(FrameworkTurn):
    def __init__(self, agent: PythonAgent, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer) -> None:
        super().__init__(prompt, hearer)
        self._agent = agent
        self._path = path
        self._brief = brief
        self._record = read_record(path)
        self._lines = ClaudeLines()
        self._counted: set[str] = set()  # messages whose tokens were
        self._output = 0  # tokens that were counted of the last one's answer
        self._open: set[str] = set()  # messages that no answer has covered
        self._client: ClaudeSDKClient | None = None
        self._sending: set[asyncio.Future[None]] = set()
        self._over = False

    async def run(self) -> Turned:
        await self._hearer.gate.enter()  # once: its requests are made elsewhere
        turned = Turned()
        try:
            turned = await super().run()
            return turned
        finally:
            self._over = True
            self._hearer.gate.leave(limited=turned.rate_limited)

    def sync(self) -> None:
        """Claude Code writes what was said."""

    async def _whole(self) -> Turned:
        await asyncio.to_thread(end_orphans, self._record.id)
        await asyncio.to_thread(guard_runs)
        options = self._options()
        self._record = _placed(self._record, options)
        write_record(self._path, self._record)
        again = self._prompt.again and last_prompt(entries(self._record.transcript)) == self._prompt.text
        self._client = ClaudeSDKClient(options)
        try:
            await self._client.connect()
            await self._client.query(self._message(GO_ON if again else self._prompt.text))
            return self._result(await self._answered(self._client))
        except asyncio.CancelledError:
            with suppress(Exception):
                async with asyncio.timeout(LONGEST_GOODBYE):
                    await self._client.interrupt()
            raise
        finally:
            await self._client.disconnect()

    async def _answered(self, client: ClaudeSDKClient) -> ResultMessage:
        """The last answer: a message that came too late for one is answered by the next."""
        result: ResultMessage | None = None
        messages = client.receive_messages()
        while True:
            limit = None if result is None else LONGEST_ECHO
            try:
                async with asyncio.timeout(limit):
                    message = await anext(messages)
            except (StopAsyncIteration, TimeoutError):
                break
            if isinstance(message, ResultMessage):
                result = message
                self._open -= {message.user_message_uuid, *(message.user_message_uuids or ())}
                if not self._open or message.is_error:
                    break
            else:
                self._on_message(message)
        if result is None:
            raise ClaudeSDKError("Claude Code ended without a result.")
        return result

    def _options(self) -> ClaudeAgentOptions:
        given: ClaudeAgentOptions = self._agent.agent
        if self._agent.deps is not None:
            raise InvalidInput("A Claude agent takes no deps.", hint="Give it options of its own.")
        settings, record = self._brief.settings, self._record
        exists = record.transcript is not None
        tools = () if self._prompt.last else settings.tools
        return replace(
            given,
            **chosen_tools(given, tools),
            model=settings.model or given.model,
            cwd=record.cwd or given.cwd or self._brief.cwd,
            env={**given.env, **self._brief.env, **owner_mark(record.id)},
            include_partial_messages=True,
            can_use_tool=given.can_use_tool or self._permitted,
            continue_conversation=False,
            session_id=None if exists else record.id,
            resume=record.id if exists else record.source or None,
            fork_session=not exists and bool(record.source),
            resume_session_at=None if exists else record.at or None,
        )

    async def _message(self, text: str) -> AsyncIterator[dict[str, Any]]:
        """One message of the user, in which `@path` reads no file."""
        id = str(uuid4())
        self._open.add(id)
        message = {"role": "user", "content": text}
        yield {
            "type": "user",
            "message": message,
            "uuid": id,
            "parent_tool_use_id": None,
            "client_composed": True,
        }

    # -- while it goes on

    def steer(self, text: str) -> bool:
        if self._client is None or self._over:
            return False
        sending = asyncio.ensure_future(self._client.query(self._message(text)))
        self._sending.add(sending)
        sending.add_done_callback(self._sent)
        return True

    def _sent(self, sending: asyncio.Future[None]) -> None:
        self._sending.discard(sending)
        if not sending.cancelled():
            sending.exception()  # the turn itself says that Claude Code is gone

    async def _permitted(
        self, tool: str, arguments: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResult:
        asked = f"{self._record.id}.allow.{context.tool_use_id}"
        question = permission(asked, tool, arguments=arguments, detail=context.decision_reason or "")
        reply = await self._hearer.ask(question)
        if reply.allows is True:
            return PermissionResultAllow(updated_input=arguments)
        return PermissionResultDeny(message=reply.text or "It was not allowed.")

    def _on_message(self, message: Message) -> None:
        if isinstance(message, StreamEvent):
            self._on_piece(message)
        elif isinstance(message, AssistantMessage | UserMessage):
            if isinstance(message, AssistantMessage):
                self._said = ""
                self._count(message)
            if getattr(message, "model", "") != "<synthetic>":  # an error: the result says it, too
                for line in self._lines.of_message(message):
                    self._hearer.line(line)
        else:
            self._hearer.alive()

    def _on_piece(self, event: StreamEvent) -> None:
        if event.event.get("type") == "message_delta" and event.parent_tool_use_id is None:
            self._count_rest(event.event)
        delta = cast("dict[str, Any]", event.event.get("delta") or {})
        text = str(delta.get("text") or "") if event.parent_tool_use_id is None else ""
        if text:
            self._said += text
            self._hearer.said(text)
        else:
            self._hearer.alive()

    def _count(self, message: AssistantMessage) -> None:
        """Each block is a message of its own, with the usage of all of them."""
        if message.message_id and message.message_id not in self._counted:
            self._counted.add(message.message_id)
            self._output = int((message.usage or {}).get("output_tokens") or 0)
            self._hearer.spent(turns=1, tokens=_tokens(message.usage))

    def _count_rest(self, event: dict[str, Any]) -> None:
        """A message has its usage from before its answer was written; how long that is comes at its end."""
        usage = cast("dict[str, Any]", event.get("usage") or {})
        written = int(usage.get("output_tokens") or 0)
        if written > self._output:
            self._hearer.spent(tokens=written - self._output)
            self._output = written

    # -- the end

    def _result(self, result: ResultMessage) -> Turned:
        self._spend(result)
        if result.is_error:
            said = result.result or "; ".join(result.errors or ()) or result.subtype
            return failed(Failed(said, "model_error"), judge(said, result.api_error_status or 0))
        if result.structured_output is not None:
            value = jsonable(result.structured_output)
            return Turned(text=as_text(value.value), result=value)
        return Turned(text=result.result or "")

    def _spend(self, result: ResultMessage) -> None:
        """Claude Code counts on from the last time when it resumes the session that it had last."""
        total = result.total_cost_usd or 0.0
        here, in_all = _tokens(result.usage), _tokens_in_all(result)
        before = self._record.cost if in_all > here else 0.0
        self._hearer.spent(cost=max(0.0, total - before))
        self._record.cost = total
        write_record(self._path, self._record)

    def _failed(self, problem: Exception) -> Turned:
        if isinstance(problem, ClaudeSDKError):
            return failed(Failed(str(problem), "agent_error"), judge(str(problem)))
        return raised(problem, "agent_error")


COUNTED = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
COUNTED_IN_ALL = ("inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")


def _tokens(usage: dict[str, Any] | None) -> int:
    return sum(int((usage or {}).get(name) or 0) for name in COUNTED)


def _tokens_in_all(result: ResultMessage) -> int:
    models = cast("dict[str, dict[str, Any]]", result.model_usage or {})
    return sum(int(used.get(name) or 0) for used in models.values() for name in COUNTED_IN_ALL)


def _placed(record: ClaudeSession, options: ClaudeAgentOptions) -> ClaudeSession:
    """Where this session is found from now on."""
    record.config = record.config or str(config_folder(options.env))
    record.cwd = record.cwd or str(options.cwd)
    return record
