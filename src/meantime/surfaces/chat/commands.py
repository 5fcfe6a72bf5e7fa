"""Slash commands: for the person, answered at once, and never seen by the agent."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from meantime.api import Thread
from meantime.kernel.change import Disposition
from meantime.kernel.errors import Ambiguous, InvalidInput, MeantimeError, NotFound
from meantime.kernel.ids import display
from meantime.kernel.model import Task

from . import texts
from .conversation import SETTING, Conversation
from .following import Following
from .hands import Hands
from .view import View

MAX_ASYNC = "task-max-async"
PEEK = 20  # lines of what a task has said
HELP = (
    ("/tasks", "what runs and what has ended; also /tasks list"),
    ("/task show <id>", "one task; the beginning of an id is enough"),
    ("/task follow <id>", "its output, line by line, as it comes; again: no longer"),
    ("/task end <id>", "stop it"),
    (f"/set {MAX_ASYNC} <n>", "how many may run at once; -1: any number"),
    ("/help", "this"),
    ("/quit", "leave; what runs goes on (also: Ctrl+D)"),
)
KEYS = (
    ("Ctrl+B", "sends what the agent waits for to the background"),
    ("Ctrl+C", "interrupts the agent; what it started goes on"),
)


class Said(NamedTuple):
    text: str
    wrong: bool = False


class Commands:
    def __init__(
        self, thread: Thread, view: View, hands: Hands, following: Following, conversation: Conversation
    ) -> None:
        self._thread = thread
        self._view = view
        self._hands = hands
        self._following = following
        self._conversation = conversation
        self._tasks: dict[str, Callable[[Task], Awaitable[Said]]] = {
            "end": self._end,
            "show": self._show,
            "follow": self._follow,
        }

    async def do(self, line: str) -> Said:
        """Never raises for what somebody typed."""
        word, *rest = line.split()
        try:
            match word:
                case "/tasks":
                    return await self._list(rest)
                case "/task":
                    return await self._task(rest)
                case "/set":
                    return await self._set(rest)
                case "/help":
                    return Said(help_text())
                case _:
                    return Said(f"Unknown command: {word}\nUse /help to see the commands.", wrong=True)
        except MeantimeError as problem:
            return Said(str(problem), wrong=True)

    async def _list(self, rest: list[str]) -> Said:
        if rest not in ([], ["list"]):
            return Said("Usage: /tasks [list]")
        await self._view.look()
        return Said(texts.tasks_list(self._view.listed(self._hands.max_async)))

    async def _task(self, rest: list[str]) -> Said:
        verb = rest[0] if rest else ""
        if verb not in self._tasks:
            return Said("Usage: /task end|show|follow <task-id>\n\nUse /tasks list to see task IDs.")
        if len(rest) < 2:
            return Said(texts.END_USAGE.replace("end", verb, 1))
        ref = rest[1]
        try:
            return await self._tasks[verb](await self._thread.get(ref))
        except (NotFound, InvalidInput):
            return Said(texts.not_found(ref), wrong=True)
        except Ambiguous as several:
            found = [await self._thread.get(id) for id in several.candidates]
            return Said(texts.ambiguous(ref, found), wrong=True)

    async def _end(self, task: Task) -> Said:
        if task.ended:
            return Said(texts.not_running(task), wrong=True)
        answer = await self._thread.cancel(task.id, by="user")
        if answer.disposition is Disposition.ALREADY_ENDED:
            return Said(texts.cancel_failed(task), wrong=True)
        return Said(texts.cancelled(task))

    async def _show(self, task: Task) -> Said:
        said = ""
        if task.work.kind == "shell" and not task.ended:
            said = (await self._thread.log(task.id).tail(PEEK)).text
        return Said(texts.peek(task, said))

    async def _follow(self, task: Task) -> Said:
        if task.work.kind != "shell":
            return Said(f"{texts.name(task)} has no output to follow. /task show shows it.", wrong=True)
        return Said(f"{self._following.toggle(task)} ({display(task.id)})")

    async def _set(self, rest: list[str]) -> Said:
        if len(rest) != 2:
            return Said(f"Usage: /set {MAX_ASYNC} <n>\n\nIt is {self._hands.max_async:g} now.")
        name, value = rest
        if name != MAX_ASYNC:
            return Said(f"Unknown setting: {name}\nThere is: {MAX_ASYNC}", wrong=True)
        number = limit(value)
        if number is None:
            return Said(texts.NOT_A_LIMIT, wrong=True)
        self._hands.max_async = number
        self._conversation.add(SETTING, f"{MAX_ASYNC} {number:g}")
        await self._conversation.save()
        return Said(f"{MAX_ASYNC} is {number:g} now.")


def limit(value: str | None) -> float | None:
    """As seed 002 checks it: a positive number, or -1; None for anything else."""
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and (number == -1 or number > 0) else None


def help_text() -> str:
    width = max(len(left) for left, _ in (*HELP, *KEYS)) + 2
    return "\n".join(f"{left:<{width}}{right}" for left, right in (*HELP, *KEYS))


def completions(line: str, active: list[Task], ended: list[Task]) -> Iterator[tuple[str, str]]:
    """What the last word may become, with what it is: commands, and ids of tasks as they are now."""
    *before, word = line.split(" ")
    match before:
        case []:
            known = [("/tasks", "list"), ("/task", "end, show or follow one"), ("/set", MAX_ASYNC)]
            options = [*known, ("/help", "keys and commands"), ("/quit", "what runs goes on")]
        case ["/tasks"]:
            options = [("list", "all of them")]
        case ["/task"]:
            options = [("end", "stop it"), ("show", "all about it"), ("follow", "its output, as it comes")]
        case ["/task", "end" | "follow"]:
            options = _ids(active)
        case ["/task", "show"]:
            options = _ids([*active, *reversed(ended)])
        case ["/set"]:
            options = [(MAX_ASYNC, "how many may run at once")]
        case _:
            options = []
    yield from (option for option in options if option[0].startswith(word.removeprefix("t_")))


def _ids(tasks: list[Task]) -> list[tuple[str, str]]:
    ids = [task.id for task in tasks]
    return [(display(task.id, ids), f"{texts.name(task)} ({texts.status(task)})") for task in tasks]
