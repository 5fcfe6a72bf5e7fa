"""Background work as a toolset of a Pydantic AI agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, PreparedToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from meantime.conversation.dialect_lookup import OWN, Wording
from meantime.integrations.framework_talk.talk_tools import THRESHOLD, DeclaredTool, Function, TalkTools
from meantime.kernel.work import Orderable
from meantime.thread import Thread

_ANYTHING = SchemaValidator(core_schema.any_schema())


def tools(
    thread: Thread,
    *functions: Function,
    agents: Sequence[str] | Mapping[str, str] | None = None,
    commands: Callable[..., Orderable[Any]] | None = None,
    threshold: float | str | None = THRESHOLD,
    dialect: Wording = OWN,
) -> TaskTools:
    """A toolset for `Agent(…, toolsets=[…])`.

    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        (seconds, or a text such as "5s"), and else goes on in the background, as the same run; with None it
        is always waited for.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    dialect: the words of the tools.
    """
    return TaskTools(
        TalkTools(thread, functions, agents=agents, commands=commands, threshold=threshold, dialect=dialect)
    )


class TaskTools(AbstractToolset[Any]):
    def __init__(self, shared: TalkTools) -> None:
        self._shared = shared

    @property
    def id(self) -> str:
        return f"meantime-{self._shared.thread.id}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {tool.tool_def.name: tool for tool in self._shared.made(self._tool)}

    def _tool(self, tool: DeclaredTool, tools: TalkTools) -> ToolsetTool[Any]:
        made = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.schema,
            toolset_id=self.id,  # otherwise the framework copies each definition for each request
        )
        return ToolsetTool(toolset=self, tool_def=made, max_retries=1, args_validator=_ANYTHING)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        # Not a ModelRetry: the second one would end the run.
        return (await self._shared.answer(name, tool_args, ctx.tool_call_id)).text


class TaskToolsOfRun(AbstractCapability[Any]):
    """Adds the tools to one run, inside of its own toolset. As a toolset beside it, they would make the
    framework start concurrent tasks for each of its questions to toolsets, four times a request.
    """

    def __init__(self, tools: TaskTools) -> None:
        self._tools = tools

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        if isinstance(toolset, PreparedToolset):  # within, so that hooks that prepare tools see these, too
            return replace(toolset, wrapped=_Together(toolset.wrapped, self._tools))
        return _Together(toolset, self._tools)


@dataclass
class _Together(WrapperToolset[Any]):
    added: TaskTools

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        found, added = await self.wrapped.get_tools(ctx), await self.added.get_tools(ctx)
        if twice := found.keys() & added.keys():
            raise UserError(f"The agent has a tool {min(twice)!r}, and Meantime has one of this name, too.")
        return {**found, **added}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        toolset = self.added if tool.toolset is self.added else self.wrapped
        return await toolset.call_tool(name, tool_args, ctx, tool)
