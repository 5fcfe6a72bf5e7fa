"""Turns of a loop of one's own: an async function of a conversation, or an async generator."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from meantime.execution.containment import contained
from meantime.integrations.agent_host.append_log import INTERRUPTED, AppendLog
from meantime.integrations.agent_host.host_errors import failed, raised
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.lines import Kind, Line
from meantime.kernel.model import Failed
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.provider_errors import RetryAdvice
from meantime.ports.session import Brief, Hearer, Prompt, Turned

from .loop_conversation import Conversation, TryAgain, as_line, lines_of


class LoopTurns:
    """Its sessions are files of lines."""

    def __init__(self) -> None:
        self._talking: dict[str, Conversation] = {}

    def path(self, folder: Path, session: str) -> Path:
        return folder / f"{session}.lines"

    def begin(self, path: Path) -> None:
        path.touch(0o600)

    def fork(self, path: Path, copy: Path) -> None:
        encoded = [msgspec.json.encode(line) for line in closed(lines_of(AppendLog(path)))]
        copy.touch(0o600)
        if encoded:
            AppendLog(copy).append(*encoded)

    def lines(self, path: Path) -> Sequence[Line]:
        return lines_of(AppendLog(path))

    def steer(self, session: str, text: str) -> bool:
        talk = self._talking.get(session)
        if talk is not None:
            talk.hear(text)
        return talk is not None

    async def prompt(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> Turned:
        kept = AppendLog(path)
        was = lines_of(kept)
        now = closed(was)
        talk = Conversation(kept, was, brief, hearer, last=prompt.last)
        for line in now[len(was) :]:
            talk.add(line)
        said = next((line.text for line in reversed(was) if line.role == "user"), None)
        if not prompt.again or said != prompt.text:
            talk.add(Line(role="user", text=prompt.text))
        self._talking[session] = talk
        try:
            return await self._paced(agent.agent, talk, hearer)
        finally:
            del self._talking[session]
            talk.heard()  # what came too late is there for the next turn
            await asyncio.to_thread(kept.sync)

    async def _paced(self, agent: Any, talk: Conversation, hearer: Hearer) -> Turned:
        """A loop makes its requests itself: the gate is passed once, for all of them."""
        await hearer.gate.enter()
        turned = Turned()
        try:
            turned = await self._turn(agent, talk)
            while talk.unheard and turned.error is None:
                talk.heard()
                turned = await self._turn(agent, talk)
            return turned
        finally:
            hearer.gate.leave(limited=turned.rate_limited, retry_after=turned.retry_after)

    async def _turn(self, agent: Any, talk: Conversation) -> Turned:
        try:
            with contained():
                made = agent(talk)
                said = await made if inspect.isawaitable(made) else await _taken(made, talk)
                result = jsonable(said)
        except TryAgain as again:
            error = Failed(str(again) or "The provider is in trouble.", "provider")
            return failed(error, RetryAdvice(True, again.limited, again.after))
        except Exception as problem:
            return raised(problem, "agent_error")
        if said is None:
            return Turned(text=_last_said(talk))
        text = as_text(result.value)
        if text:
            talk.add(Line(role="assistant", text=text))
        return Turned(text=text, result=result)


async def _taken(made: Any, talk: Conversation) -> str | None:
    """From a generator: texts are pieces of what it says, and Lines are whole. A line ends a text."""
    said = ""
    try:
        async for given in made:
            if isinstance(given, str):
                talk.say(given)
                said += given
                continue
            if said:
                talk.add(Line(role="assistant", text=said))
                said = ""
            talk.add(as_line(given))
    except asyncio.CancelledError:
        if said:
            talk.add(Line(role="assistant", text=said))  # as far as it came
        raise
    finally:
        await made.aclose()
    return said or None


def _last_said(talk: Conversation) -> str:
    for line in reversed(talk.messages):
        if line.role == "user":
            return ""
        if line.role == "assistant" and line.kind is Kind.TEXT:
            return line.text
    return ""


def closed(lines: Sequence[Line]) -> list[Line]:
    """Calls that were never answered are: whoever made them was stopped, or killed."""
    answered = {line.call for line in lines if line.kind is Kind.RESULT}
    open_calls = [
        line for line in lines if line.kind is Kind.CALL and line.call and line.call not in answered
    ]
    return [
        *lines,
        *(
            Line(role="tool", kind=Kind.RESULT, tool=line.tool, call=line.call, text=INTERRUPTED, failed=True)
            for line in open_calls
        ),
    ]
