"""What the model can do: run a command, waiting or not, and look at what runs. As seed 002 has it, it cannot
stop a task: that is for the person."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from meantime.kernel.errors import Ambiguous, InvalidInput, MeantimeError, NotFound
from meantime.kernel.ids import crockford
from meantime.kernel.model import Task
from meantime.toolset.words import fenced

from . import look, texts
from .hands import Hands, refusal
from .view import View

MOST = 16_000  # characters of an output that the model is shown
PEEK = 100  # lines


class ChatTools:
    RUN = (
        "Runs a command line in the shell and returns its output. The person can send it to the background "
        "while it runs. With async: true it is handed off, and this returns at once."
    )
    RUN_SCHEMA: dict[str, Any] = {  # noqa: RUF012  nobody changes it
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "A line for /bin/sh."},
            "description": {"type": "string", "description": "A few words that say what it is for."},
            "cwd": {"type": "string", "description": "The folder to run it in."},
            "timeout_seconds": {"type": "number", "description": "Seconds until it is stopped."},
            "async": {"type": "boolean", "description": texts.ASYNC},
        },
        "required": ["command"],
        "additionalProperties": False,
    }
    CHECK = texts.CHECK
    CHECK_SCHEMA: dict[str, Any] = {  # noqa: RUF012
        "type": "object",
        "properties": {"task_id": {"type": "string", "description": texts.CHECK_ID}},
        "additionalProperties": False,
    }

    def __init__(self, hands: Hands, view: View, show: Callable[[Sequence[str]], None]) -> None:
        self._hands = hands
        self._view = view
        self._show = show

    async def reminder(self) -> str:
        """For every question to the model."""
        await self._view.look()
        return texts.reminder(self._view.active, await self._view.untold())

    async def run(self, **given: Any) -> str:
        command, is_async = given.get("command", ""), given.get("async", False)
        where: dict[str, Any] = {"cwd": given.get("cwd"), "timeout": given.get("timeout_seconds")}
        self._show(look.call("run", command))
        try:
            if is_async:
                task = await self._hands.launch(command, description=given.get("description", ""), **where)
                return self._launched(task)
            done = await self._hands.call(command, **where)
        except MeantimeError as problem:
            self._show(look.output(refusal(problem), failed=True))
            return f"{problem.code}: {problem}"
        if done.task is not None:
            return self._launched(done.task)
        self._show(look.output(done.text, done.failed))
        return f"{'It failed.' if done.failed else 'Done.'}\n{_cut(done.text)}"

    def _launched(self, task: Task) -> str:
        self._show(look.launched(task))
        return texts.LAUNCHED.format(name=texts.name(task), id=task.id)

    async def check(self, **given: Any) -> str:
        ref = given.get("task_id")
        if not ref:
            await self._view.look()
            return texts.checked_list(self._view.listed(self._hands.max_async))
        thread = self._hands.thread
        try:
            task = await thread.get(ref)
            said = ""
            if task.work.kind == "shell" and not task.ended:
                said = (await thread.log(task.id).tail(PEEK, limit=MOST)).text
            return texts.peek(task, _fenced(said))
        except (NotFound, InvalidInput):
            return texts.not_found(ref)
        except Ambiguous as several:
            return texts.ambiguous(ref, [await thread.get(id) for id in several.candidates], "- ")


def _cut(text: str) -> str:
    if len(text) > MOST:
        text = f"(cut: the last {MOST:,} of {len(text):,} characters)\n{text[-MOST:]}"
    return _fenced(text) or "(no output)"


def _fenced(text: str) -> str:
    return fenced(text, crockford(os.urandom(8))) if text else ""
