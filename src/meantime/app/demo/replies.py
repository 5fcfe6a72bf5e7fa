"""The scripted agent's answers to a person. A small vocabulary, and one line for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.app.meantime import Meantime
from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.surfaces.terminal.terminal_text import plain, plain_lines

from .layout import last_lines, overview, took

HELP = (
    "tasks         what runs and what has ended (also: ps)",
    "show <id>     one task; the beginning of an id is enough",
    "logs <id>     what a command said last",
    "cancel <id>   stop it; you are told like of any other ending",
    "quit          stop everything and sum up (also: Ctrl+D)",
)
TAIL = 10  # lines of a log


class Answers:
    """The person's view: it sees every thread, so also the subagent's children."""

    def __init__(self, mt: Meantime) -> None:
        self._mt = mt
        self._words = {"show": self._show, "logs": self._logs, "cancel": self._cancel}

    async def to(self, line: str) -> list[str]:
        word, _, ref = line.strip().lower().partition(" ")
        ref = ref.strip()
        if word in ("tasks", "ps"):
            return await self._tasks()
        if word in ("help", "?"):
            return list(HELP)
        if word not in self._words:
            return [await self._anything()]
        if not ref:
            return [f"{word} which one? Give an id, or the beginning of one; type tasks to see them."]
        try:
            return await self._words[word](ref)
        except NotFound:
            return [f"No task begins with {ref!r}. Type tasks to see their ids."]
        except MeantimeError as problem:
            return str(problem).splitlines()

    async def _tasks(self) -> list[str]:
        tasks = (await self._mt.list())[::-1]
        return overview(tasks, {task.id: await self._now(task) for task in tasks if not task.ended})

    async def _anything(self) -> str:
        running = [task.title for task in (await self._mt.list())[::-1] if not task.ended and not task.parent]
        if not running:
            return "I am a script and know few words. Nothing runs any more."
        return f"I am a script and know few words (try help). Still running: {', '.join(running)}."

    async def _now(self, task: Task) -> str:
        if task.work.kind == "shell":
            return last_lines((await self._mt.log(task.id).tail(1)).text)
        said = task.progress
        if said is None or said.percent is None:
            return ""
        return f"{said.percent:.0f} % {said.message}".strip()

    async def _show(self, ref: str) -> list[str]:
        task = await self._mt.get(ref)
        rows = [
            ("task", f"{task.title} ({task.id})"),
            ("status", f"{task.status} after {took(task)}" if task.ended else f"{task.status}, {took(task)}"),
            ("work", f"{task.work.kind}: {plain(task.work.name)}"),
            ("thread", task.thread),
        ]
        children = await self._children(task)
        if children:
            named = ", ".join(f"{display(child.id)} {child.title}" for child in children)
            rows.append(("children", named))
        if task.ended:
            said = last_lines((await self._mt.output(task.id)).text, 2)
            rows.append(("said", said or "nothing"))
        else:
            rows.append(("now", await self._now(task) or "nothing said yet"))
        return [f"{name:<8}  {value}" for name, value in rows]

    async def _children(self, task: Task) -> Sequence[Task]:
        return [other for other in (await self._mt.list())[::-1] if other.parent == task.id]

    async def _logs(self, ref: str) -> list[str]:
        task = await self._mt.get(ref)
        if task.work.kind != "shell":
            return [f"{task.title} is a function: it has progress (show it), but no log."]
        said = plain_lines((await self._mt.log(task.id).tail(TAIL)).text).rstrip()
        return said.splitlines() or [f"{task.title} has said nothing so far."]

    async def _cancel(self, ref: str) -> list[str]:
        task = await self._mt.get(ref)
        if task.ended:
            return [f"{task.title} has ended already: {task.status}."]
        await self._mt.cancel(task.id)
        return [f"I asked {task.title} to stop. You will be told."]
