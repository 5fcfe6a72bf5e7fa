"""The model's tools: run a command or an agent, waiting or not, and look at what runs. As seed 002 has
it, it cannot stop a task: that is for the person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import chat_format
from .work_handoff import WAITING, WorkHandoff


class ChatTools:
    def __init__(self, hands: WorkHandoff, show: Callable[[Sequence[str]], None]) -> None:
        self._hands = hands
        self._show = show
        self.offered = hands.toolset.tools

    async def reminder(self) -> str:
        """For every question to the model."""
        return await self._hands.thread.reminder(self._hands.speech)

    async def call(self, name: str, given: dict[str, Any]) -> str:
        """A person sees what is done; what is only looked at is the model's own business."""
        if name in WAITING:
            self._show(chat_format.call(name, _about(given)))
        said = await self._hands.use(name, given)
        if name in WAITING:
            self._show(chat_format.came(said))
        return said.text


def _about(given: dict[str, Any]) -> str:
    command: Any = given.get("command")
    if command is not None:
        return " ".join(map(str, command)) if isinstance(command, list) else str(command)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return f"{given.get('subagent_name', '')}: {given.get('goal_prompt', '')}"
