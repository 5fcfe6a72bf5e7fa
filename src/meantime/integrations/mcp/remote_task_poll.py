"""Follows a task of the server's to its end: by asking now and then, sooner when the server says that
something happened, and over as many connections as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

from meantime.kernel.outcomes import Report
from meantime.ports.runner import Context

from .errors import ServerError, ServerRefused, Stale
from .remote_input import RemoteInput
from .remote_task import EXTENSION, SOONEST, RemoteTask, ending_of, interval_of, is_over
from .tool_results import INVALID_PARAMS, report_of, report_of_error

PATIENCE = 8  # looks that fail in a row, each after a longer wait, until it is given up for lost
CANCEL = 2.0  # seconds for telling the server that its task is not wanted any more


class TaskConnection(Protocol):
    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...

    def follow(self, task: str, said: Callable[[dict[str, Any]], None]) -> Callable[[], None]: ...


class TaskLink(Protocol):
    """The way to a server: SharedConnection to one that we start, HeldLink to one that a wrap holds."""

    def connection(self) -> AbstractAsyncContextManager[Any]:
        """Gives a TaskConnection."""
        ...

    def answered(self) -> None: ...

    def renounce(self, connection: Any) -> None: ...


class RemoteTaskPoll:
    def __init__(
        self, link: TaskLink, remote: RemoteTask, tool: str, context: Context, patience: int
    ) -> None:
        self._connection = link
        self._remote = remote
        self._tool = tool
        self._context = context
        self._patience = patience
        self._failures = 0
        self._stirred = asyncio.Event()
        self._leaving = False
        self._left = asyncio.Event()
        self._input = RemoteInput(context, self._stirred.set)

    async def run(self) -> Report:
        try:
            while not self._leaving:
                try:
                    async with self._connection.connection() as connection:
                        report = await self._watch(connection)
                except ServerError as problem:
                    report = await self._failed(problem)
                if report is not None:
                    return report
            return Report(detached=True)
        except asyncio.CancelledError:
            await self._cancel()
            raise
        finally:
            await self._input.asking.close()
            self._left.set()

    async def leave(self) -> None:
        """To the next owner, who finds it by its id."""
        self._leaving = True
        self._stirred.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._left.wait(), CANCEL)

    async def _watch(self, connection: TaskConnection) -> Report | None:
        stop = connection.follow(self._remote.id, self._on_state)
        try:
            while not self._leaving:
                self._stirred.clear()
                state = await connection.request("tasks/get", {"taskId": self._remote.id})
                self._failures = 0
                self._connection.answered()
                self._tell(state)
                asks = self._input.take(state) and state.get("status") == "input_required"
                if is_over(state) and not asks:
                    return await self._end(connection, state)
                await self._give_input(connection)
                await self._pause(interval_of(state))
        except Stale:
            self._connection.renounce(connection)
            raise
        finally:
            stop()
        return None

    async def _give_input(self, connection: TaskConnection) -> None:
        given = self._input.answers
        if given:
            params = {"taskId": self._remote.id, "inputResponses": given}
            await connection.request("tasks/update", params)
            self._input.sent()

    async def _pause(self, seconds: float) -> None:
        """Until the next look. However much the server talks, we do not ask more often than that."""
        began = asyncio.get_running_loop().time()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), seconds)
        spent = asyncio.get_running_loop().time() - began
        if not self._leaving and spent < SOONEST:
            await asyncio.sleep(SOONEST - spent)

    async def _end(self, connection: TaskConnection, state: dict[str, Any]) -> Report:
        report = ending_of(state, self._tool)
        if state.get("status") == "input_required":
            await self._cancel()
        if report is not None:
            return report
        if self._remote.kind == EXTENSION:
            return report_of_error({"message": "It ended, and does not say with what."}, self._tool)
        try:
            return report_of(await connection.request("tasks/result", {"taskId": self._remote.id}))
        except ServerRefused as problem:
            return report_of_error(problem.error, self._tool)

    async def _failed(self, problem: ServerError) -> Report | None:
        if isinstance(problem, ServerRefused) and problem.code == INVALID_PARAMS:
            return Report(
                lost=f"The server does not know its task {self._remote.id} any more, so how it ended "
                f"cannot be known: {problem}"
            )
        self._failures += 1
        if self._failures >= self._patience:
            return Report(
                lost=f"The server has the work as its task {self._remote.id}, and could not be asked about "
                f"it in {self._failures} tries. The last time: {problem}"
            )
        await self._pause(min(10.0, 0.1 * 2**self._failures))
        return None

    def _on_state(self, state: dict[str, Any]) -> None:
        self._tell(state)
        self._stirred.set()

    def _tell(self, state: dict[str, Any]) -> None:
        message = state.get("statusMessage")
        if isinstance(message, str) and message:
            self._context.progress(message=message)

    async def _cancel(self) -> None:
        """A task that is not wanted any more. The server may ignore it; we do not wait for that."""
        with suppress(ServerError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(CANCEL), self._connection.connection() as connection:
                await connection.request("tasks/cancel", {"taskId": self._remote.id})
