"""One connection to one server, shared by all calls of its tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from importlib.metadata import version
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from pydantic import TypeAdapter, ValidationError

from meantime.integrations.mcp.errors import NotStarted, ServerGone, ServerRefused, Stale, Unanswered
from meantime.integrations.mcp.remote_task import task_of
from meantime.integrations.mcp.servers import Server, StdioServer
from meantime.integrations.mcp.tool_results import UNREACHED
from meantime.kernel.work import ToolInfo
from meantime.ports.event_loop import BackgroundTasks

from .disconnect_reason import HOW_IT_ENDED, autopsy, in_words, why_not
from .http_transport import CUT_OFF, FORGOTTEN, http_wire
from .notification_filter import Sieve
from .server_notifications import Said, ServerNotifications
from .server_tools import REQUEST_TIMEOUT, list_tools
from .stdio_transport import StdioWire

TASKS = "io.modelcontextprotocol/tasks"
MODERN = "2026"  # versions from here on speak per request, and answer with tasks by the extension
_ANY: Any = TypeAdapter(dict[str, Any])  # the answer as it came
_OF_THE_WIRE = ("SSE stream",)  # how the SDK's own words begin where a stream of HTTP gave no answer


class TaskRequest(types.Request[dict[str, Any], str]):
    """tasks/get and its like, which the SDK does not know."""

    name_param = "taskId"


class ServerConnection:
    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self._server = server
        self._keeping: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._gone = asyncio.Event()  # its stream ended: no more answers
        self._over = asyncio.Event()  # and how is known
        self._how = ""
        self._session: ClientSession
        self._dispatcher: JSONRPCDispatcher
        self._wire: StdioWire | None = None
        self._notifications = ServerNotifications(name)
        self._tools: dict[str, ToolInfo] = {}
        self._listed_at = -1  # how often they had changed when we listed them
        self._listing = asyncio.Lock()
        self.users = 0  # the link's count
        self._side = BackgroundTasks()

    # -- life: all of it in one asyncio task, as the SDK's cancel scopes want it

    async def open(self) -> None:
        """Raises NotStarted."""
        self._keeping = asyncio.get_running_loop().create_task(self._keep())
        self._ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was heard
        await asyncio.shield(self._ready)

    @property
    def is_open(self) -> bool:
        return not (self._gone.is_set() or self._closing.is_set() or self._over.is_set())

    async def close(self) -> None:
        self._closing.set()
        if self._keeping is not None:
            if not self._ready.done():
                self._keeping.cancel()  # it may never answer
            await asyncio.wait([self._keeping])

    async def _keep(self) -> None:
        problem: BaseException | None = None
        try:
            await self._live()
        except BaseException as raised:
            problem = raised
        finally:
            self._side.cancel()
            self._how = self._how or in_words(problem)
            self._gone.set()
            self._over.set()
            if not self._ready.done():
                self._ready.set_exception(NotStarted(self._how))

    async def _live(self) -> None:
        async with self._connect() as (read, write):
            self._dispatcher = JSONRPCDispatcher(
                Sieve(read, self._notifications.on_notification, self._gone.set), write
            )
            session = ClientSession(
                dispatcher=self._dispatcher,
                client_info=types.Implementation(name="meantime", version=version("meantime")),
                extensions={TASKS: {}},
            )
            async with session:
                self._session = session
                try:
                    await self._shake_hands()
                except BaseException as problem:
                    self._how = await why_not(problem, self._server, self._wire, gone=self._gone.is_set())
                    raise
                self._ready.set_result(None)
                self._listen_for_tools()
                await self._until_over()
                if not self._closing.is_set():
                    self._how = await autopsy(self._wire)
                    self._over.set()

    def _connect(self) -> AbstractAsyncContextManager[Any]:
        if isinstance(self._server, StdioServer):
            self._wire = StdioWire(self._server)
            return self._wire
        return http_wire(self._server)

    async def _shake_hands(self) -> None:
        """Uses the newest protocol if the server knows it, otherwise the older ones."""
        with anyio.fail_after(self._server.start_timeout):
            try:
                await self._session.discover()
            except MCPError as problem:
                if problem.code == UNREACHED:
                    raise
                await self._initialize(was_slow=problem.code == types.REQUEST_TIMEOUT)
            except (ValidationError, RuntimeError):
                await self._initialize(was_slow=False)

    async def _initialize(self, *, was_slow: bool) -> None:
        try:
            await self._session.initialize()
        except MCPError as problem:
            if not was_slow or problem.code == UNREACHED:
                raise
            # It began slowly, and has read our first question after all: from then on it takes no handshake.
            await self._session.discover()

    async def _until_over(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._closing, self._gone)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # -- asking

    @property
    def is_modern(self) -> bool:
        return (self._session.protocol_version or "") >= MODERN

    async def call(
        self, tool: ToolInfo | None, name: str, arguments: dict[str, Any], said: Said
    ) -> dict[str, Any]:
        """The server's answer to a call, whatever kind it is. Cancelling this sends the cancellation."""
        token = self._notifications.new_token(said)
        params: dict[str, Any] = {"name": name, "arguments": arguments, "_meta": {"progressToken": token}}
        task: str | None = None
        try:
            answer = await self._request(self._calling(tool, params))
            task = task_of(answer)
        finally:
            self._notifications.end_call(token, task)
        return answer

    def _calling(self, tool: ToolInfo | None, params: dict[str, Any]) -> Coroutine[Any, Any, dict[str, Any]]:
        if self.is_modern:
            request = types.CallToolRequest(params=types.CallToolRequestParams.model_validate(params))
            return self._session.send_request(request, _ANY)
        if tool is not None and tool.as_task:
            params["task"] = {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._session.protocol_version or ""}
        # Not through the session: it takes an answer with a task of 2025-11-25 for a broken one.
        return self._dispatcher.send_raw_request("tools/call", params, {"headers": headers})

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = TaskRequest(method=method, params=params)
        return await self._request(
            self._session.send_request(request, _ANY, request_read_timeout_seconds=REQUEST_TIMEOUT)
        )

    async def _request(self, asking: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        try:
            return await asking
        except MCPError as problem:
            if problem.code == CUT_OFF:
                raise Unanswered(problem.message) from None
            if problem.code == FORGOTTEN:
                raise Stale(problem.message) from None
            if problem.code == types.CONNECTION_CLOSED:
                if problem.message.startswith(_OF_THE_WIRE):
                    raise Unanswered(problem.message) from None
                if not self.is_open:
                    await self._wait_over()
                    raise ServerGone(self._how) from None
            raise ServerRefused(problem.code, problem.message, problem.data) from None
        except ValidationError as problem:
            wrong = problem.errors(include_url=False, include_input=False)[:1]
            raise ServerRefused(types.PARSE_ERROR, f"The answer is not what MCP says: {wrong}") from None

    async def _wait_over(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(HOW_IT_ENDED):
                await self._over.wait()

    # -- its tools

    async def tools(self, *, fresh: bool = False) -> dict[str, ToolInfo] | None:
        """By name; None where the server does not list them. Waiting callers share one listing."""
        async with self._listing:
            changes = self._notifications.changes
            if self._listed_at == changes and not fresh:
                return self._tools
            asking: Any = list_tools(self._session, self.name)
            try:
                found = cast("dict[str, ToolInfo]", await self._request(asking))
            except ServerRefused:
                return None
            self._tools, self._listed_at = found, changes
            return found

    # -- what it says unasked: by the newer protocol, who wants to hear it must ask

    def _listen_for_tools(self) -> None:
        capabilities = self._session.server_capabilities
        tools = capabilities.tools if capabilities is not None else None
        if self.is_modern and tools is not None and tools.list_changed:
            self._side.start(self._listen({"toolsListChanged": True}))

    def follow(self, task: str, said: Said) -> Callable[[], None]:
        """Calls `said` with every state of a task that the server sends; returns how to stop that."""
        self._notifications.follow(task, said)
        listening = self._side.start(self._listen({"taskIds": [task]})) if self.is_modern else None

        def stop() -> None:
            self._notifications.unfollow(task)
            if listening is not None:
                listening.cancel()

        return stop

    async def _listen(self, wanted: dict[str, Any]) -> None:
        """Where the server does not offer it, asking now and then has to do."""
        wants = types.SubscriptionFilter.model_validate(wanted)
        params = types.SubscriptionsListenRequestParams(notifications=wants)
        with suppress(MCPError, ValidationError):
            await self._session.send_request(types.SubscriptionsListenRequest(params=params), _ANY)
