"""Receives one turn of an agent: updates become lines, pieces, spending and phases."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from meantime.integrations.agent_host.json_values import mapping, mappings
from meantime.integrations.agent_host.turn_lines import TurnLines
from meantime.kernel.lines import Kind
from meantime.ports.session import Hearer

from .permission_requests import PermissionRequests
from .profiles import Profile

ENDED = ("completed", "failed")
_NAME = re.compile(r"[\w.:/-]{1,80}")


class Called(Struct):
    """One call of a tool, as far as it is known."""

    tool: str
    title: str = ""
    arguments: Any = None
    output: str = ""


class TurnUpdates:
    def __init__(self, session: str, profile: Profile, hearer: Hearer, *, last: bool = False) -> None:
        self._profile = profile
        self.hearer = hearer
        self._calls: dict[str, Called] = {}
        self._lines = TurnLines(hearer)
        self._message: str = ""
        self._stepped = False  # the model has said something since the last result
        self.run = ""  # goose's own id of this turn: who steers it must name it
        self.asking = PermissionRequests(session, hearer, refuses=last)

    # -- what is said

    def on_update(self, update: dict[str, Any]) -> None:
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self._piece(Kind.TEXT, update)
        elif kind == "agent_thought_chunk":
            self._piece(Kind.THOUGHT, update)
        elif kind in ("tool_call", "tool_call_update"):
            self._call(update, begins=kind == "tool_call")
        elif kind == "plan":
            self._plan(update)
        else:
            goose = mapping(update, "_meta", "goose")
            self.run = str(goose.get("activeRunId", self.run) or "")
            self.hearer.alive()

    def _piece(self, kind: Kind, update: dict[str, Any]) -> None:
        content = mapping(update.get("content"))
        text = str(content.get("text") or "")
        message = str(update.get("messageId") or "")
        if kind is not self._lines.kind or (message and self._message and message != self._message):
            self.end_message()
        self._step()
        if not self._lines.has_pieces and kind is Kind.THOUGHT:
            self.hearer.phase("thinking")
        self._message = message
        self._lines.piece(text, kind)
        if kind is Kind.TEXT and text:
            self.hearer.said(text)
        else:
            self.hearer.alive()

    def end_message(self) -> None:
        self._message = ""
        self._lines.flush()

    @property
    def text(self) -> str:
        """The last thing that was said whole."""
        return self._lines.text

    def unended(self) -> str:
        """Text that is still coming and has no line yet."""
        return self._lines.unended if self._lines.kind is Kind.TEXT else ""

    def drop_message(self) -> None:
        """It is not a word of the agent's: it gets no line."""
        self._message = ""
        self._lines.take_pieces()

    def _step(self) -> None:
        """The agents do not say how often they ask the model: after every result it is once more."""
        if not self._stepped:
            self._stepped = True
            self.hearer.spent(turns=1)

    # -- what is called

    def _call(self, update: dict[str, Any], *, begins: bool) -> None:
        id = str(update.get("toolCallId") or "")
        status = str(update.get("status") or "")
        called = self._known(id, update)
        if begins:
            self.end_message()
            self._step()
        self.hearer.alive()
        early = called.arguments is not None and not self._profile.late_arguments
        if early or status in ("in_progress", *ENDED):
            self._lines.call(id, called.tool, called.arguments)
        if status in ENDED:
            self._tell_result(id, called, failed=status == "failed")

    def _known(self, id: str, update: dict[str, Any]) -> Called:
        called = self._calls.get(id)
        if called is None:
            called = self._calls[id] = Called(_tool(update))
        called.title = str(update.get("title") or called.title)
        if update.get("rawInput") is not None:
            called.arguments = update["rawInput"]
        called.output = _output(update) or called.output
        return called

    def _tell_result(self, id: str, called: Called, *, failed: bool) -> None:
        del self._calls[id]
        self._lines.result(id, called.output, failed=failed)
        self.hearer.phase("thinking")
        self._stepped = False

    def _plan(self, update: dict[str, Any]) -> None:
        entries = mappings(update.get("entries"))
        if not entries:
            return
        done = sum(entry.get("status") == "completed" for entry in entries)
        now = next((entry for entry in entries if entry.get("status") == "in_progress"), entries[0])
        self.hearer.phase(f"plan {done}/{len(entries)} {now.get('content', '')}".strip()[:200])

    # -- what is asked

    async def ask(self, params: dict[str, Any]) -> dict[str, Any]:
        self.end_message()
        update = mapping(params.get("toolCall"))
        id = str(update.get("toolCallId") or "")
        called = self._known(id, update)
        self._lines.call(id, called.tool, called.arguments)
        return await self.asking.ask(id, called.tool, called.title, called.arguments, params.get("options"))


def _tool(update: dict[str, Any]) -> str:
    """Its own name, where the agent tells it: rules are written with it. Otherwise the kind of tool."""
    named = _tool_name(update.get("_meta"))
    if named:
        return named
    title = str(update.get("title") or "").strip()
    if _NAME.fullmatch(title):
        return title
    return str(update.get("kind") or "") or title[:80] or "tool"


def _tool_name(meta: Any) -> str:
    """Agents put it into their own corner of _meta: {"goose": {"toolCall": {"toolName": …}}}."""
    for name, value in mapping(meta).items():
        found = value if name == "toolName" and isinstance(value, str) else _tool_name(value)
        if found:
            return found
    return ""


def _output(update: dict[str, Any]) -> str:
    parts: list[str] = []
    for part in mappings(update.get("content")):
        if part.get("type") == "diff":
            parts.append(f"changed {part.get('path', '')}")
        elif text := mapping(part.get("content")).get("text"):
            parts.append(str(text))
    if parts:
        return "\n".join(parts)
    raw = update.get("rawOutput")
    return raw if isinstance(raw, str) else ""
