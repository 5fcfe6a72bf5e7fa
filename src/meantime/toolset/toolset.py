"""The tools of one conversation. Whoever carries the calls (MCP, a framework, a loop of one's own) gets
names, schemas and texts from here; what goes wrong is a text with a stable code, never an exception."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from meantime.kernel.change import Disposition
from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound
from meantime.kernel.ids import crockford
from meantime.kernel.lifecycle import ACTIVE, ENDED
from meantime.kernel.model import InlineLimits, Task
from meantime.kernel.notices import Notice, notice_id
from meantime.kernel.work import Order
from meantime.ports.tasks import Options, Tasks

from . import arguments as taking
from . import words
from .arguments import LONGEST_WAIT, MOST_LISTED, MOST_READ, Arguments, parsed, schema

LOG = logging.getLogger("meantime.toolset")
BEAT = 15.0  # seconds: a host may cut off a call that says nothing for longer
INLINE = InlineLimits(8_000, 200)  # of a notice's payload: hosts cut long results, and then nobody is told
Beat = Callable[[float, float, str], Awaitable[None]]


async def _silent(spent: float, most: float, message: str) -> None:
    """For a carrier whose calls nobody cuts off."""


class Works(Protocol):
    """How words become work, where the calls arrive."""

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order: ...

    async def tools(self) -> Sequence[str]:
        """The registered ones, by name."""
        ...

    async def start_tool(
        self, thread: str, name: str, arguments: dict[str, Any], options: Options
    ) -> Task: ...


class Tool(NamedTuple):
    name: str
    description: str
    schema: dict[str, Any]
    reads: bool = False  # it changes nothing
    starts: bool = False  # its answer is a task


class Said(NamedTuple):
    """What a call answers. `reads` are the notices of endings that it shows: they need not be told again."""

    text: str
    code: str = ""  # of an error
    reads: tuple[str, ...] = ()


class Toolset:
    def __init__(self, tasks: Tasks, works: Works, thread: str) -> None:
        self._tasks = tasks
        self._works = works
        self._thread = thread
        self._doing: dict[str, Callable[[Any, Beat], Awaitable[Said]]] = {
            "start": self._start,
            "start_tool": self._start,
            "output": self._output,
            "list": self._list,
            "wait": self._wait,
            "cancel": self._cancel,
            "send": self._send,
        }

    async def tools(self) -> list[Tool]:
        names = await self._works.tools()
        found = [Tool("start", words.START, schema(taking.Start), starts=True)]
        if names:
            known = schema(taking.StartTool)
            known["properties"]["name"]["enum"] = list(names)
            found.append(Tool("start_tool", words.START_TOOL, known, starts=True))
        return [
            *found,
            Tool("output", words.OUTPUT, schema(taking.Output), reads=True),
            Tool("list", words.LIST, schema(taking.List), reads=True),
            Tool("wait", words.WAIT.format(seconds=LONGEST_WAIT), schema(taking.Wait), reads=True),
            Tool("cancel", words.CANCEL, schema(taking.Cancel)),
            Tool("send", words.SEND, schema(taking.Send)),
        ]

    async def call(self, name: str, arguments: object, beat: Beat = _silent) -> Said:
        """`beat` is told how long a wait has lasted, and how long it lasts at most."""
        try:
            return await self._doing[self._known(name)](parsed(_KINDS[name], arguments), beat)
        except MeantimeError as error:
            return Said(words.problem(error), error.code)
        except Exception:
            LOG.exception("The tool %s failed.", name)
            return Said("internal: The call failed; the log of this process says why.", "internal")

    async def started(self, name: str, arguments: object, **options: Any) -> Task:
        """The task itself, for those who follow it by themselves. Raises."""
        if name not in STARTING:
            raise InvalidInput(f"{name} starts nothing.")
        return await self._begin(parsed(_KINDS[name], arguments), **options)

    def _known(self, name: str) -> str:
        if name not in self._doing:
            raise NotFound(f"There is no tool {name[:100]!r}.", hint=f"There are: {', '.join(self._doing)}.")
        return name

    async def _begin(self, given: Any, **more: Any) -> Task:
        options = Options(timeout=given.timeout, description=given.description, batch=given.batch, **more)
        if isinstance(given, taking.StartTool):
            return await self._works.start_tool(self._thread, given.name, given.arguments, options)
        order = self._works.command(given.command, cwd=given.cwd, open_stdin=given.stdin)
        return await self._tasks.start(self._thread, order, options)

    async def _start(self, given: Any, beat: Beat) -> Said:
        task = await self._begin(given, inline=INLINE)
        return Said(f"Started {words.line(task, time.time())}\n{words.STARTED}")

    async def _output(self, given: taking.Output, beat: Beat) -> Said:
        task = await self._tasks.get(given.id, self._thread)
        head = words.line(task, time.time())
        if task.work.kind == "shell":
            body = await self._said(task, given)
        else:
            body = _block((await self._tasks.output(task.id, self._thread)).text)
        return Said(f"{head}\n{body}".rstrip(), reads=_endings(task))

    async def _said(self, task: Task, given: taking.Output) -> str:
        if given.offset is None:
            chunk = await self._tasks.tail(task.id, self._thread, "both", given.tail, MOST_READ)
        else:
            chunk = await self._tasks.read(task.id, self._thread, "both", given.offset, MOST_READ)
        lost = f" {chunk.lost_bytes} bytes before them are not kept." if chunk.lost_bytes else ""
        where = f"Bytes {chunk.offset} to {chunk.next} of {chunk.total}.{lost}"
        return f"{where}\n{_block(chunk.text)}" if chunk.total else "It has said nothing yet."

    async def _list(self, given: taking.List, beat: Beat) -> Said:
        statuses = {"active": ACTIVE, "ended": ENDED, "all": ACTIVE | ENDED}[given.status]
        found = await self._tasks.list(self._thread, statuses, batch=given.batch, limit=given.limit)
        nothing = "Nothing runs." if given.status == "active" else "There are no such tasks."
        return Said(words.listed(found, time.time()) or nothing)

    async def _wait(self, given: taking.Wait, beat: Beat) -> Said:
        ids = given.ids
        if not ids:
            ids = [task.id for task in await self._tasks.list(self._thread, ACTIVE, limit=MOST_LISTED)]
        if not ids:
            return Said("Nothing runs, so there is nothing to wait for.")
        began = time.monotonic()
        while True:
            spent = time.monotonic() - began
            left = max(0.0, given.seconds - spent)
            found = await self._tasks.wait(ids, self._thread, until=given.until, timeout=min(BEAT, left))
            ended = [task for task in found if task.ended]
            if len(ended) == len(found) or (given.until == "any" and ended) or left <= BEAT:
                break
            await beat(time.monotonic() - began, given.seconds, f"{len(ended)} of {len(found)} have ended")
        text, reads = _fitting(found)
        return Said(text if len(ended) == len(found) else f"{text}\n{words.STILL}", reads=reads)

    async def _cancel(self, given: taking.Cancel, beat: Beat) -> Said:
        answer = await self._tasks.cancel(given.id, self._thread, by="agent", reason=given.reason, wait=True)
        late = "\nIt had ended before." if answer.disposition is Disposition.ALREADY_ENDED else ""
        return Said(f"{_shown(answer.task)}{late}", reads=_endings(answer.task))

    async def _send(self, given: taking.Send, beat: Beat) -> Said:
        await self._tasks.send(given.id, self._thread, given.text, eof=given.eof)
        return Said("Sent." if not given.eof else "Sent, and closed.")


STARTING = ("start", "start_tool")
_KINDS: dict[str, type[Arguments]] = {
    "start": taking.Start,
    "start_tool": taking.StartTool,
    "output": taking.Output,
    "list": taking.List,
    "wait": taking.Wait,
    "cancel": taking.Cancel,
    "send": taking.Send,
}


def _endings(task: Task) -> tuple[str, ...]:
    return (notice_id(task.id, task.run.number),) if task.ended else ()


def _shown(task: Task) -> str:
    """An ending as its notice would tell it."""
    if not task.ended:
        return words.line(task, time.time())
    return Notice(task, 0, crockford(os.urandom(8))).message().text


def _fitting(tasks: Sequence[Task]) -> tuple[str, tuple[str, ...]]:
    """Endings as whole as there is room for. The others are a line each, and are told by their notices."""
    lines: list[str] = []
    reads: list[str] = []
    room = MOST_READ
    for task in tasks:
        text = _shown(task)
        if task.ended and (room == MOST_READ or len(text) <= room):
            room -= len(text)
            reads += _endings(task)
        else:
            text = words.line(task, time.time())
        lines.append(text)
    return "\n".join(lines), tuple(reads)


def _block(text: str) -> str:
    return words.fenced(text, crockford(os.urandom(8))) if text else ""
