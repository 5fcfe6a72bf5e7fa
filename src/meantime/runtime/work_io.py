"""work I/O: what running work says, and what it is told, for the runners that can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from meantime.kernel.argument_checks import as_bytes, check_all
from meantime.kernel.constraints import check_choice, check_count, check_flag
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Line, LinePage, PlacedLine, chosen
from meantime.kernel.model import Chunk, Task
from meantime.ports.engine import Engine
from meantime.ports.runner import PagingRunner, SpeakingRunner, TalkingRunner

from .follow_ups import FollowUps
from .queries import Looking
from .record import not_started

MOST = 1 << 20  # bytes of one answer
MOST_LINES = 100_000
MOST_PAGE = 8 << 20  # bytes of a conversation at once
STREAMS = ("both", "stdout", "stderr")
LOOK_AGAIN = 0.5  # seconds


class WorkIO:
    def __init__(self, looking: Looking, following: FollowUps, engine: Engine) -> None:
        self._looking = looking
        self._following = following
        self._engine = engine

    async def read(self, ref: str, thread: str | None, stream: str, offset: int, limit: int) -> Chunk:
        check_count(offset, "offset", 0, 1 << 62)
        check_count(limit, "limit", 1, MOST)
        stream = check_choice(stream, "stream", STREAMS)
        task = await self._looking.find(ref, thread)
        chunk = await self._runner(task).read(task, stream, offset, limit)
        return replace(chunk, ended=task.ended and chunk.next >= chunk.total)

    async def tail(self, ref: str, thread: str | None, stream: str, lines: int, limit: int) -> Chunk:
        check_count(lines, "lines", 1, MOST_LINES)
        check_count(limit, "limit", 1, MOST)
        stream = check_choice(stream, "stream", STREAMS)
        task = await self._looking.find(ref, thread)
        chunk = await self._runner(task).tail(task, stream, lines, limit)
        return replace(chunk, ended=task.ended)

    async def wait_output(self, ref: str, thread: str | None, stream: str, seen: int) -> None:
        """Returns when there is more than `seen` bytes, when the task has ended, or after a while."""
        check_count(seen, "seen", -1, 1 << 62)
        stream = check_choice(stream, "stream", STREAMS)
        task = await self._looking.find(ref, thread)
        if not task.ended and not await self._runner(task).changed(task, stream, seen):
            await self._looking.wait([task.id], None, timeout=LOOK_AGAIN)  # it may be queued, and start

    async def lines(
        self, ref: str, thread: str | None, kinds: Sequence[str], roles: Sequence[str], last: int | None
    ) -> Sequence[Line]:
        if last is not None:
            check_count(last, "last", 0, MOST_LINES)
        kinds, roles = check_all(kinds, str, "kinds"), check_all(roles, str, "roles")
        task = await self._looking.find(ref, thread)
        runner = self._engine.runner(task.work.kind)
        if not runner.abilities.talk:
            raise Refused(f"{_what(task)} hold no conversation.", code="no_lines", hint="Use its log.")
        return chosen(await cast("TalkingRunner", runner).lines(task), kinds, roles, last)

    async def line_page(self, ref: str, thread: str | None, offset: int, most: int) -> LinePage:
        check_count(offset, "offset", -(1 << 62), 1 << 62)
        check_count(most, "most", MOST, MOST_PAGE)
        task = await self._looking.find(ref, thread)
        runner = self._engine.runner(task.work.kind)
        if runner.abilities.pages:
            return await cast("PagingRunner", runner).line_page(task, offset, most)
        lines = await self.lines(task.id, None, (), (), None)
        placed = tuple(PlacedLine(place, line) for place, line in enumerate(lines))
        return LinePage(placed[max(0, offset) :], 0, len(lines), len(lines))

    async def send(self, ref: str, thread: str | None, data: object, *, eof: bool) -> str:
        """The result: \"written\" to a command, \"steered\" into an agent's turn, or \"queued\"."""
        check_flag(eof, "eof")
        task = await self._looking.find(ref, thread)
        runner = self._engine.runner(task.work.kind)
        if runner.abilities.talk and not task.ended:
            return await self._following.say(task, data if isinstance(data, str) else as_words(data))
        if isinstance(data, str):
            data = as_bytes(data)
        if not isinstance(data, bytes):
            raise InvalidInput(f"send takes text or bytes, not {type(data).__name__}.")
        if task.ended:
            hint = "Go on with it by resume." if runner.abilities.resume else "Start a new one."
            raise Refused(f"Task {task.id} has ended.", code="ended", hint=hint)
        if not runner.abilities.input:
            raise Refused(f"{_what(task)} cannot be sent anything while they run.", code="no_input")
        if task.status is Status.QUEUED:
            raise not_started(task)
        await cast("SpeakingRunner", runner).write(task, data, eof=eof)
        return "written"

    def _runner(self, task: Task) -> SpeakingRunner:
        runner = self._engine.runner(task.work.kind)
        if not runner.abilities.output:
            raise Refused(f"{_what(task)} have no log.", code="no_log", hint="Use output() for their result.")
        return cast("SpeakingRunner", runner)


def as_words(data: object) -> object:
    """Over the link every text comes as bytes."""
    if not isinstance(data, bytes):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _what(task: Task) -> str:
    return "Python functions" if task.work.kind == "call" else f"{task.work.kind} tasks"
