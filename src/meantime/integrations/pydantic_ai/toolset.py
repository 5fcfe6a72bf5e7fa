"""Background work as tools of a Pydantic AI agent: the verbs of a thread, slow functions, and subagents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from meantime.api import Thread
from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.model import Task
from meantime.kernel.payloads import as_text, jsonable
from meantime.kernel.work import Agent, Order
from meantime.ports.tasks import Options
from meantime.runners.background import BackgroundFunction
from meantime.runners.shell.work import Shell
from meantime.toolset import words
from meantime.toolset.toolset import Toolset

THRESHOLD = 5.0  # seconds that a function may take before it goes on in the background
SLOW = "{name} takes longer and goes on in the background as task {id}. {told}"
DELEGATE = "Starts an agent in the background with a prompt of its own, and returns its task id at once."
_ANYTHING = SchemaValidator(core_schema.any_schema())


def tools(
    thread: Thread,
    *functions: BackgroundFunction[..., Any],
    agents: Sequence[str] = (),
    threshold: float | None = THRESHOLD,
    commands: bool = True,
) -> TaskTools:
    """A toolset for `Agent(…, toolsets=[…])`.

    functions: each is a tool. It answers at once if it is done within `threshold` seconds, and else goes on
        in the background, as the same run.
    agents: whom the model may start.
    commands: False takes away the tool that starts commands.
    """
    return TaskTools(thread, functions, tuple(agents), threshold, commands)


class TaskTools(AbstractToolset[Any]):
    def __init__(
        self,
        thread: Thread,
        functions: Sequence[BackgroundFunction[..., Any]],
        agents: tuple[str, ...],
        threshold: float | None,
        commands: bool,
    ) -> None:
        self._thread = thread
        self._functions = {function.name: function for function in functions}
        self._agents = agents
        self._threshold = threshold
        self._commands = commands
        self._verbs = Toolset(thread._tasks, _Works(), thread.id)  # pyright: ignore[reportPrivateUsage]  the verbs it speaks to
        self.reads: list[str] = []  # notices of endings that the model has read here

    @property
    def id(self) -> str:
        return f"meantime-{self._thread.id}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        found: list[tuple[str, str, dict[str, Any]]] = [
            (tool.name, tool.description, tool.schema)
            for tool in await self._verbs.tools()
            if self._commands or tool.name not in ("start", "send")
        ]
        if self._agents:
            found.append(("start_agent", DELEGATE, _delegate(self._agents)))
        for name, function in self._functions.items():
            found.append((name, function.description, function.schema))
        return {name: self._tool(name, description, schema) for name, description, schema in found}

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> ToolsetTool[Any]:
        made = ToolDefinition(name=name, description=description, parameters_json_schema=schema)
        return ToolsetTool(toolset=self, tool_def=made, max_retries=1, args_validator=_ANYTHING)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> str:
        try:
            if name in self._functions:
                return await self._call(name, tool_args, ctx.tool_call_id)
            if name == "start_agent":
                return await self._delegate(tool_args, ctx.tool_call_id)
        except MeantimeError as problem:
            raise ModelRetry(words.problem(problem)) from problem
        said = await self._verbs.call(name, tool_args, _no_beat)
        self.reads += said.reads
        return said.text

    async def _call(self, name: str, given: dict[str, Any], id: str | None) -> str:
        function = self._functions[name]
        function.check((), given)
        answer = await self._thread.call(
            function.work(**given), threshold=self._threshold, tool_call_id=id, description=name
        )
        if answer.task is None:
            return as_text(jsonable(answer.result).value)
        return SLOW.format(name=name, id=answer.task.id, told=words.STARTED)

    async def _delegate(self, given: dict[str, Any], id: str | None) -> str:
        agent, prompt = given.get("agent"), given.get("prompt")
        if agent not in self._agents:
            raise NotFound(f"There is no agent {agent!r}.", hint=f"There are: {', '.join(self._agents)}.")
        handle = await self._thread.start(
            Agent(agent, str(prompt or "")),
            tool_call_id=id,
            description=str(given.get("description") or agent),
        )
        return f"Started {agent} as task {handle.id}. {words.STARTED}"


class _Works:
    """Commands get the environment of this process. Functions are tools of their own here."""

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        return Shell(command, cwd=cwd, open_stdin=open_stdin).order()

    async def tools(self) -> Sequence[str]:
        return ()

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        raise NotFound(f"There is no tool {name!r} to start.")


def _delegate(agents: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "agent": {"type": "string", "enum": list(agents)},
            "prompt": {"type": "string", "description": "All that it has to know: it sees nothing else."},
            "description": {"type": "string", "description": "A few words that say what it is for."},
        },
        "required": ["agent", "prompt"],
        "additionalProperties": False,
    }


async def _no_beat(spent: float, most: float, text: str) -> None:
    """Nobody cuts off a call in this process."""
