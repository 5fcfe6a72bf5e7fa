"""The SDK's server, with our tools and resources on it. One serves all connections of a transport: whose
conversation a request belongs to is asked each time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from meantime.kernel.errors import MeantimeError
from meantime.ports.dialect import Said
from meantime.toolset.exports import listed

from . import mcp_tasks, resources
from .client_conversation import ClientConversation, shown
from .notice_delivery import Ride
from .subscriptions import Subscriptions
from .task_methods import TaskMethods, declares

Context = ServerRequestContext[Any, Any]
CODE = "meantime/code"  # in a result's _meta: an error's stable code
NOTICES = "meantime/notices"  # and the ids of the notices that ride on it


class AnswerTransport(Protocol):
    """A transport, as the server needs it."""

    async def conversation(self, ctx: Context) -> ClientConversation: ...

    def carries(self, ctx: Context, conversation: ClientConversation, ride: Ride) -> None:
        """The answer to this request has notices with it: the transport says when it is out."""
        ...


class MeantimeServer(Server[Any]):
    def get_capabilities(self, *args: Any, **kwargs: Any) -> types.ServerCapabilities:
        found = super().get_capabilities(*args, **kwargs)
        if kwargs.get("protocol_version") not in MODERN_PROTOCOL_VERSIONS:
            calls = types.ServerTasksRequestsCapability(
                tools=types.TasksToolsCapability(call=types.TasksCallCapability())
            )
            found.tasks = types.ServerTasksCapability(
                list=types.TasksListCapability(), cancel=types.TasksCancelCapability(), requests=calls
            )
        return found


class ToolServer:
    def __init__(
        self, transport: AnswerTransport, version: str, instructions: str, *, more: bool = False
    ) -> None:
        """`more`: a call may have arguments that no schema names. The transport takes them out."""
        self._transport = transport
        self._more = more
        self.listening = Subscriptions(transport.conversation)
        self.server = MeantimeServer(
            "meantime",
            version=version,
            instructions=instructions,
            get_tool_input_schema=lambda name: None,  # we use none of its headers
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_list_resource_templates=self._templates,
            on_read_resource=self._read,
            on_subscribe_resource=self.listening.subscribe,
            on_unsubscribe_resource=self.listening.unsubscribe,
            on_subscriptions_listen=self.listening.listen,
        )
        self.server.extensions = {mcp_tasks.EXTENSION: {}}
        methods = TaskMethods(transport.conversation)
        methods.serve(self.server)
        self.server.middleware[:] = [methods.calls_of_2025]  # without telemetry: nobody collects it

    # -- tools

    async def _tools(self, ctx: Context, params: Any) -> types.ListToolsResult:
        conversation = await self._transport.conversation(ctx)
        tools = await conversation.toolset.tools()
        found = [listed(tool, more=self._more) for tool in tools]
        return types.ListToolsResult(tools=[types.Tool.model_validate(one, by_name=False) for one in found])

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        conversation = await self._transport.conversation(ctx)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and declares(ctx)
        if modern and conversation.takes_tasks and await conversation.toolset.starts(params.name):
            made = await self._as_task(conversation, params)
            if made is not None:
                return made
        async with conversation.call() as inbox:
            said = await conversation.toolset.call(params.name, params.arguments, _beat(ctx))
            ride = await inbox.ride(said.reads)
        if ride is not None:
            self._transport.carries(ctx, conversation, ride)
        return result(said, ride)

    async def _as_task(self, conversation: ClientConversation, params: types.CallToolRequestParams) -> Any:
        try:
            task = await conversation.start(params.name, params.arguments)
        except MeantimeError as problem:
            return result(await conversation.toolset.refusal(params.name, problem), None)
        return None if task is None else {"resultType": "task", **mcp_tasks.state(task)}

    # -- resources

    async def _resources(self, ctx: Context, params: Any) -> types.ListResourcesResult:
        found = await resources.listed(await self._transport.conversation(ctx))
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=text, mime_type="text/plain")
                for uri, name, text in found
            ]
        )

    async def _templates(self, ctx: Context, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=resources.TEMPLATE,
            name="task",
            description="A task, and what it said last.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        conversation = await self._transport.conversation(ctx)
        uri = str(params.uri)
        try:
            text = await resources.text(conversation, uri)
        except MeantimeError as problem:
            raise MCPError(types.INVALID_PARAMS, shown(problem), {"code": problem.code}) from None
        found = types.TextResourceContents(uri=uri, text=text, mime_type="text/plain")
        return types.ReadResourceResult(contents=[found])


def result(said: Said, ride: Ride | None) -> types.CallToolResult:
    """No structured content: some hosts show a model that alone, and it would never see its notices."""
    texts = [said.text, *(ride.texts if ride else ())]
    if ride is not None and ride.more:
        texts.append(f"{ride.more} more notices come with your next call.")
    meta: dict[str, Any] = {CODE: said.code} if said.code else {}
    if ride is not None:
        meta[NOTICES] = ride.told
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in texts], is_error=bool(said.code), _meta=meta or None
    )


def _beat(ctx: Context) -> Callable[[float, float, str], Awaitable[None]]:
    async def beat(spent: float, most: float, message: str) -> None:
        await ctx.session.report_progress(round(spent, 1), most, message)

    return beat
