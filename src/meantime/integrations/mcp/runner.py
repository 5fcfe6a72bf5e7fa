"""Runs tools of MCP servers. A call that is answered with its result ends with us; one that the server
makes a task of its own goes on there, and a later owner adopts it by its id."""

from __future__ import annotations

import asyncio
import difflib
import importlib.util
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from meantime.kernel.errors import InvalidInput, MeantimeError, NotFound, Refused
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.work import ToolInfo
from meantime.ports.clock import Clock
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers
from meantime.ports.wrapped_server import RemoteAnswer

from .errors import NotStarted, ServerGone, ServerRefused, Stale, Unanswered
from .held_link import HeldLink
from .remote_task import RemoteTask, age_of, beginning, needs_input, remembered, remote_of
from .remote_task_poll import PATIENCE, RemoteTaskPoll, TaskLink
from .servers import Server, checked
from .shared_connection import SharedConnection
from .tool_results import report_of, report_of_error

LOG = logging.getLogger("meantime.mcp")
CUT_OFF = "Meantime ended while the call was under way. Whether the tool did its work is not known."
MOST_PROGRESS = 1e100  # beyond, and what is no number at all, is nonsense
NAMED = 20  # tools that a hint lists
UNKNOWN = "Whether the tool did its work is not known."


class McpRunner:
    kind = "tool"
    abilities = Abilities(adopt=True)

    def __init__(self, servers: Mapping[str, Server], clock: Clock, *, patience: int = PATIENCE) -> None:
        """`patience`: how often in a row a server may fail to say how its own task stands."""
        self.servers = checked(servers)
        self._patience = patience
        self._clock = clock
        self._connections: dict[str, SharedConnection] = {}
        self._following: dict[str, RemoteTaskPoll] = {}

    # -- life

    def open(self) -> None:
        pass

    async def close(self) -> None:
        links, self._connections = list(self._connections.values()), {}
        await asyncio.gather(*(link.close() for link in links))

    def check(self, task: Task, assignment: Assignment) -> None:
        if assignment.target is not None:
            return  # a call that runs already, at a server that a wrap holds
        server, _ = _parts(task)
        self._check_server(server)

    def _check_server(self, server: str) -> None:
        if server not in self.servers:
            known = (
                near(server, self.servers) if self.servers else "Name them: Meantime.open(…, servers={…})."
            )
            raise InvalidInput(f"There is no MCP server {server!r} here.", hint=known, code="unknown_server")
        if importlib.util.find_spec("mcp") is None:
            raise InvalidInput(
                "Tools of MCP servers need the MCP SDK.",
                code="extra_missing",
                hint="Install it: pip install 'meantime[mcp]'.",
            )

    def can_run(self, task: Task) -> bool:
        return task.work.faithful and _parts(task)[0] in self.servers

    async def exists(self, task: Task) -> bool:
        return False

    async def tools(self, server: str | None) -> Sequence[ToolInfo]:
        """The tools that the server offers now, or those of all servers."""
        if server is not None:
            return await self._tools(server)
        asked = await asyncio.gather(*map(self._tools, self.servers), return_exceptions=True)
        found: list[ToolInfo] = []
        for name, answer in zip(self.servers, asked, strict=True):
            if isinstance(answer, MeantimeError):
                LOG.warning("The tools of %s are not listed: %s", name, answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found += answer
        return found

    async def _tools(self, server: str) -> Sequence[ToolInfo]:
        self._check_server(server)
        try:
            async with self._connection(server).connection() as connection:
                found = await connection.tools(fresh=True)
                self._connection(server).answered()
        except (NotStarted, ServerGone, Unanswered, Stale) as problem:
            raise Refused(
                f"The server {server} cannot be asked for its tools. {problem}", code="server_not_started"
            ) from None
        if found is None:
            raise NotFound(f"The server {server} does not list tools.")
        return list(found.values())

    # -- one run

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        server, tool = _parts(task)
        if assignment.target is not None:
            found = await assignment.target(context)
            return await self._follow_held(found, task, context) if isinstance(found, RemoteAnswer) else found
        if not assignment.again:
            return await self._call(server, tool, assignment, context)
        remote = remembered(task.session or "")
        if remote is None:
            return Report(lost=CUT_OFF)
        if server not in self.servers:
            return Report(
                lost=f"The server has the work as its task {remote.id}, and is not configured here any more."
            )
        return await self._follow(server, remote, task, context)

    async def _call(self, server: str, tool: str, assignment: Assignment, context: Context) -> Report:
        given = assignment.kwargs.get("arguments", assignment.task.work.input)
        name = f"{server}/{tool}"
        began = beginning(self._clock)
        try:
            answer = await self._request(server, tool, given or {}, context)
        except NotStarted as problem:
            why = f"The server {server} could not be reached. {problem}"
            hint = "Start it by hand to see what is wrong, or correct its configuration."
            return Report(error=Failed(why, "server_not_started", hint))
        except (ServerGone, Unanswered, Stale) as problem:
            return Report(lost=f"The server {server} was lost while the tool ran. {UNKNOWN} {problem}")
        except ServerRefused as problem:
            return report_of_error(problem.error, name)
        if isinstance(answer, Report):
            return answer
        remote = remote_of(answer)
        if remote is not None:
            remote = structs.replace(remote, began=began)
            if remote.session is not None:
                context.in_session(remote.session)
            return await self._follow(server, remote, assignment.task, context)
        if answer.get("resultType") == "input_required":
            return Report(error=needs_input(name))
        return report_of(answer)

    async def _request(
        self, server: str, tool: str, arguments: dict[str, Any], context: Context, again: bool = False
    ) -> dict[str, Any] | Report:
        link = self._connection(server)
        async with link.connection() as connection:
            try:
                known = await connection.tools()
                if known is not None and tool not in known:
                    known = await connection.tools(fresh=True)  # it may be new
            except (ServerGone, Unanswered) as problem:
                raise NotStarted(f"It was lost before the tool was called. {problem}") from None
            if known is not None and tool not in known:
                link.answered()
                return Report(
                    error=Failed(
                        f"The server {server} has no tool {tool!r}. {near(tool, known)}", "unknown_tool"
                    )
                )
            try:
                answer = await connection.call(
                    known.get(tool) if known else None, tool, arguments, lambda said: _progress(context, said)
                )
            except ServerRefused:
                link.answered()
                raise
            except Stale:
                link.renounce(connection)
                if again:
                    raise
            else:
                link.answered()
                return answer
        return await self._request(server, tool, arguments, context, again=True)

    async def _follow(self, server: str, remote: RemoteTask, task: Task, context: Context) -> Report:
        return await self._poll(self._connection(server), remote, task, context)

    async def _poll(self, link: TaskLink, remote: RemoteTask, task: Task, context: Context) -> Report:
        following = RemoteTaskPoll(link, remote, task.work.name, context, self._patience)
        self._following[task.id] = following
        try:
            return await following.run()
        finally:
            del self._following[task.id]

    async def _follow_held(self, held: RemoteAnswer, task: Task, context: Context) -> Report:
        """A task of a server that a wrap holds. Only a server that is configured here can be asked about it
        by the next owner."""
        try:
            remote = remote_of(held.answer)
            if remote is None:
                return report_of(held.answer)
            remote = structs.replace(remote, began=beginning(self._clock))
            if remote.session is not None and _parts(task)[0] in self.servers:
                context.in_session(remote.session)
            return await self._poll(HeldLink(held), remote, task, context)
        finally:
            held.release()

    def _connection(self, server: str) -> SharedConnection:
        link = self._connections.get(server)
        if link is None:
            link = self._connections[server] = SharedConnection(server, self.servers[server])
        return link

    # -- what outlasts us: the server's own tasks

    def prepare(self, task: Task) -> None:
        pass

    def knows_whose(self, task: Task) -> bool:
        return False

    def age(self, task: Task) -> float:
        remote = remembered(task.session or "")
        return age_of(remote.began if remote else "", task, self._clock)

    async def detach(self, task: Task) -> bool:
        following = self._following.get(task.id)
        if following is None or task.session is None or _parts(task)[0] not in self.servers:
            return False
        await following.leave()
        return True

    def keep(self, task: Task, kept: bool) -> None:
        pass

    async def end_leftovers(self, task: Task) -> Leftovers:
        return Leftovers()

    def forget(self, task: Task) -> None:
        pass

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        pass


def _parts(task: Task) -> tuple[str, str]:
    server, _, tool = task.work.name.partition("/")
    return server, tool


def _progress(context: Context, said: Mapping[str, Any]) -> None:
    """progress of total, in percent; what makes no sense is left out."""
    done, total, message = _number(said.get("progress")), _number(said.get("total")), said.get("message")
    percent = 100.0 * done / total if done is not None and total else None
    text = message if isinstance(message, str) else None
    if percent is not None or text is not None:
        context.progress(percent, message=text)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_PROGRESS:
        return None
    return float(value)


def near(name: str, known: Iterable[str]) -> str:
    """The names that somebody may have meant, or all that there are, in words."""
    names = sorted(known)
    meant = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if meant:
        return f"Did you mean {' or '.join(meant)}?"
    if not names:
        return "There are none."
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"There are: {', '.join(names[:NAMED])}{more}."
