"""Slash commands: for the person, answered at once, and never seen by the agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from meantime.kernel.errors import InvalidInput, MeantimeError
from meantime.kernel.ids import display, shorten
from meantime.kernel.model import Task
from meantime.ports.asks import Read, SetLimit
from meantime.ports.dialect import Dialect
from meantime.thread import Thread

from . import chat_format
from .chat_dialect import Speech
from .chat_transcript import SETTING, ChatTranscript
from .followed_tasks import FollowedTasks
from .task_view import TaskView
from .work_handoff import WorkHandoff

MAX_ASYNC = "task-max-async"
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


class CommandReply(NamedTuple):
    text: str
    wrong: bool = False


class SlashCommands:
    def __init__(
        self, thread: Thread, hands: WorkHandoff, following: FollowedTasks, conversation: ChatTranscript
    ) -> None:
        self._thread = thread
        self._hands = hands
        self._following = following
        self._conversation = conversation

    async def do(self, line: str) -> CommandReply:
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
                    return CommandReply(help_text())
                case _:
                    return CommandReply(
                        f"Unknown command: {word}\nUse /help to see the commands.", wrong=True
                    )
        except MeantimeError as problem:
            return CommandReply(str(problem), wrong=True)

    async def _list(self, rest: list[str]) -> CommandReply:
        if rest not in ([], ["list"]):
            return CommandReply("Usage: /tasks [list]")
        return await self._by_dialect("/tasks list")

    async def _task(self, rest: list[str]) -> CommandReply:
        match rest:
            case ["follow", ref, *_]:
                return await self._follow(ref)
            case ["end" | "show" as verb, *more]:
                return await self._by_dialect(" ".join(["/task", verb, *more[:1]]))
            case _:
                verb = "follow" if rest == ["follow"] else "end|show|follow"
                return CommandReply(f"Usage: /task {verb} <task-id>\n\nUse /tasks list to see task IDs.")

    async def _by_dialect(self, line: str) -> CommandReply:
        said = await self._hands.toolset.command(line)
        return CommandReply(said.text, wrong=bool(said.code))

    async def _follow(self, ref: str) -> CommandReply:
        try:
            task = await self._thread.get(ref)
        except MeantimeError as problem:
            said = await self._hands.toolset.refusal("/task follow", problem, Read(ref=ref))
            return CommandReply(said.text, wrong=True)
        if task.work.kind != "shell":
            return CommandReply(
                f"{chat_format.name(task)} has no output to follow. /task show shows it.", wrong=True
            )
        return CommandReply(f"{self._following.toggle(task)} ({display(task.id)})")

    async def _set(self, rest: list[str]) -> CommandReply:
        if len(rest) != 2:
            return CommandReply(f"Usage: /set {MAX_ASYNC} <n>\n\nIt is {self._hands.max_async} now.")
        name, value = rest
        if name != MAX_ASYNC:
            return CommandReply(f"Unknown setting: {name}\nThere is: {MAX_ASYNC}", wrong=True)
        try:
            most = limit(self._hands.speech, value)
        except InvalidInput as problem:
            return CommandReply(problem.message, wrong=True)
        self._hands.allow(most)
        self._conversation.add(SETTING, f"{MAX_ASYNC} {most}")
        await self._conversation.save()
        return CommandReply(f"{MAX_ASYNC} is {most} now.")


def limit(dialect: Dialect, value: str) -> int:
    """As the dialect checks it: its command would set it for everybody, and here it is one
    conversation's."""
    command = next(one for one in dialect.commands() if one.name == f"set {MAX_ASYNC}")
    ask = command.ask(value)
    assert isinstance(ask, SetLimit)
    return ask.most


def help_text() -> str:
    width = max(len(left) for left, _ in (*HELP, *KEYS)) + 2
    return "\n".join(f"{left:<{width}}{right}" for left, right in (*HELP, *KEYS))


async def completions(line: str, speech: Speech, view: TaskView) -> list[tuple[str, str]]:
    """Completions of the last word, each with its meaning: commands, and ids of tasks as they are now."""
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
            await view.look()
            options = _ids(speech, view.active)
        case ["/task", "show"]:
            await view.look()
            options = _ids(speech, [*view.active, *reversed(view.ended)])
        case ["/set"]:
            options = [(MAX_ASYNC, "how many may run at once")]
        case _:
            options = []
    return [option for option in options if option[0].startswith(word.removeprefix("t_"))]


def _ids(speech: Speech, tasks: Sequence[Task]) -> list[tuple[str, str]]:
    every = [task.id for task in tasks]
    ids = shorten(every, every)
    return [(ids[task.id], f"{chat_format.name(task)} ({speech.word(task)})") for task in tasks]
