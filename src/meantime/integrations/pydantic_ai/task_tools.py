"""Background work as tools of a Pydantic AI agent: its thread's verbs, and functions that may be slow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from meantime.conversation.turn import Turn
from meantime.kernel.errors import InvalidInput, MeantimeError
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.work import Orderable
from meantime.thread import Thread

THRESHOLD = 5.0  # seconds that a function may take before it goes on in the background
SLOW = (
    "{name} takes longer and goes on in the background as task {id}. You are told when it ends. Do not poll "
    "or wait for it; go on with other work."
)
_ANYTHING = SchemaValidator(core_schema.any_schema())


class Function(Protocol):
    """The result of `@background` on a function."""

    name: str
    description: str

    @property
    def schema(self) -> dict[str, Any]: ...

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def work(self, *args: Any, **kwargs: Any) -> Orderable[Any]: ...


def tools(
    thread: Thread,
    *functions: Function,
    agents: Sequence[str] | Mapping[str, str] | None = None,
    commands: Callable[..., Orderable[Any]] | None = None,
    threshold: float | None = THRESHOLD,
) -> TaskTools:
    """A toolset for `Agent(…, toolsets=[…])`.

    functions: each, with `@background`, is a tool. It answers at once if it is done within `threshold`
        seconds, and else goes on in the background, as the same run.
    agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
        None is none.
    commands: `Shell`, where the agent may start commands; None is not.
    """
    return TaskTools(thread, functions, agents, commands, threshold)


class TaskTools(AbstractToolset[Any]):
    def __init__(
        self,
        thread: Thread,
        functions: Sequence[Function],
        agents: Sequence[str] | Mapping[str, str] | None,
        commands: Callable[..., Orderable[Any]] | None,
        threshold: float | None,
    ) -> None:
        _check(thread, functions)
        self._thread = thread
        self._functions = {function.name: function for function in functions}
        self._agents = agents
        self._commands = commands
        self._threshold = threshold
        self.reads: set[str] = set()  # notices of endings that the model has read here
        self.begin(None)

    def begin(self, turn: Turn | None) -> None:
        """Notices that the model reads from now on count as told with the ack of this turn."""
        self.reads.clear()
        self._verbs = self._thread.toolset(agents=self._agents, commands=self._commands, turn=turn)

    @property
    def id(self) -> str:
        return f"meantime-{self._thread.id}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        found = [(tool.name, tool.description, tool.schema) for tool in await self._verbs.tools()]
        found += [(name, one.description, one.schema) for name, one in self._functions.items()]
        return {name: self._tool(name, description, schema) for name, description, schema in found}

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> ToolsetTool[Any]:
        made = ToolDefinition(name=name, description=description, parameters_json_schema=schema)
        return ToolsetTool(toolset=self, tool_def=made, max_retries=1, args_validator=_ANYTHING)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        if name in self._functions:
            return await self._call(name, tool_args, ctx.tool_call_id)
        said = await self._verbs.call(name, tool_args, tool_call_id=ctx.tool_call_id)
        self.reads.update(said.reads)
        return said.text

    async def _call(self, name: str, given: dict[str, Any], id: str | None) -> str:
        try:
            function = self._functions[name]
            function.check((), given)
            answer = await self._thread.call(
                function.work(**given), threshold=self._threshold, tool_call_id=id, description=name
            )
        except MeantimeError as problem:
            raise ModelRetry(str(problem)) from problem
        if answer.task is None:
            return as_text(jsonable(answer.result).value)
        return SLOW.format(name=name, id=answer.task.id)


def _check(thread: object, functions: Sequence[object]) -> None:
    if not isinstance(thread, Thread):
        raise InvalidInput(f"{thread!r:.100} is not a thread.", hint='Use mt.thread("conversation-1").')
    for function in functions:
        if not hasattr(function, "work"):
            # Not marked here on the way: what is marked can be started by its name at every door.
            what = f"{function!r:.100} is not a function that can be handed off."
            raise InvalidInput(what, hint="Put @background (from meantime) above it.")
