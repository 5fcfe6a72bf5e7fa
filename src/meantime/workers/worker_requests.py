"""Requests of the owner to a worker, such as for a stretch of output, repeated until they are answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from msgspec.structs import replace

from meantime.kernel.errors import Closed, Refused
from meantime.kernel.model import Chunk, Claim, Task, Work
from meantime.link.wire_errors import from_wire
from meantime.ports.clock import Clock
from meantime.ports.runner import Leftovers

from .messages import AnswerMessage, EndLeftoversMessage, FromOwner, ReadMessage, SendMessage, WatchMessage
from .output_ahead import AHEAD, OutputAhead

ASK_AGAIN = 1.0  # seconds
PATIENCE = 10.0  # seconds after which a worker that does not answer is unreachable
KILL_PATIENCE = 60.0  # seconds: every process of a busy machine is looked at, several times
Request = ReadMessage | WatchMessage | SendMessage | EndLeftoversMessage


class WorkerRequests:
    """`tell` gets the claim whose worker is asked. It may leave a request out: each is repeated. `is_up` says
    whether the carrier is up."""

    def __init__(
        self, tell: Callable[[Claim, FromOwner], None], clock: Clock, is_up: Callable[[], bool]
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._is_up = is_up
        self._open: dict[str, asyncio.Future[AnswerMessage]] = {}
        self._ahead = OutputAhead(clock)
        self._life = os.urandom(8).hex()  # an answer to an earlier owner is not ours
        self._count = 0
        # Workers of an earlier version go by the number alone, so it is above those of an owner before.
        self._sent = int(clock.now() * 1_000_000)

    async def read(
        self,
        claim: Claim,
        *,
        stream: str = "",
        offset: int = 0,
        most: int = 0,
        lines: int = 0,
    ) -> Chunk:
        if not lines and (chunk := self._ahead.take(claim, stream, offset, most)) is not None:
            return chunk
        request = ReadMessage(ask="", nonce=claim.nonce, stream=stream, offset=offset, most=most, lines=lines)
        answer = await self._ask(claim, request, PATIENCE)
        return answer.chunk or Chunk(b"", offset, offset, offset)

    async def read_file(self, claim: Claim, file: str, offset: int, most: int, patience: float) -> Chunk:
        """A piece of a file that the worker removes soon. While the carrier is down no worker can answer, so
        that time is not counted: the worker may be well, and has the only copy."""
        request = ReadMessage(ask="", nonce=claim.nonce, offset=offset, most=most, file=file)
        answer = await self._ask(claim, request, patience, outlasts=True)
        return answer.chunk or Chunk(b"", offset, offset, offset)

    async def watch(self, claim: Claim, stream: str, seen: int) -> bool:
        """Output that came with the answer is kept for the read that follows."""
        request = WatchMessage(ask="", nonce=claim.nonce, stream=stream, seen=seen, most=AHEAD)
        answer = await self._ask(claim, request, PATIENCE)
        if answer.chunk is not None:
            self._ahead.keep(claim, stream, seen, answer.chunk)
        return answer.changed

    async def send(self, claim: Claim, data: bytes, *, eof: bool) -> None:
        self._sent += 1
        request = SendMessage(
            ask="", nonce=claim.nonce, number=self._sent, data=data, eof=eof, sender=self._life
        )
        await self._ask(claim, request, PATIENCE)

    async def end_leftovers(self, claim: Claim, task: Task) -> Leftovers:
        work = Work(task.work.kind, "")
        named = Task(id=task.id, thread=task.thread, work=work, status=task.status, run=task.run)
        request = EndLeftoversMessage(ask="", nonce=claim.nonce, task=named)
        answer = await self._ask(claim, request, KILL_PATIENCE)
        return Leftovers(answer.killed, answer.left)

    async def _ask(
        self, claim: Claim, request: Request, patience: float, *, outlasts: bool = False
    ) -> AnswerMessage:
        """`outlasts`: an outage of the carrier does not count."""
        self._count += 1
        key = f"{self._life}.{self._count}"
        request = replace(request, ask=key)
        answer: asyncio.Future[AnswerMessage] = asyncio.get_running_loop().create_future()
        self._open[key] = answer
        waited = 0.0
        try:
            while not answer.done():
                if waited >= patience:
                    raise Refused(
                        f"Worker {claim.worker} does not answer.",
                        code="worker_unreachable",
                        hint="`meantime workers` shows the age of its last message.",
                    )
                self._tell(claim, request)
                await self._wait(answer)
                waited += ASK_AGAIN if self._is_up() or not outlasts else 0.0
            found = answer.result()
        finally:
            self._open.pop(key, None)
        if found.error is not None:
            raise from_wire(found.error)
        return found

    async def _wait(self, answer: asyncio.Future[AnswerMessage]) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(ASK_AGAIN, lambda: over.done() or over.set_result(None))
        try:
            await asyncio.wait([answer, over], return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()

    def answered(self, answer: AnswerMessage) -> None:
        asked = self._open.get(answer.ask)
        if asked is not None and not asked.done():
            asked.set_result(answer)

    def close(self) -> None:
        for asked in self._open.values():
            if not asked.done():
                asked.set_exception(Closed())
                asked.exception()  # its asker may be cancelled before it looks: nothing is logged then
