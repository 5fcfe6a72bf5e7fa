"""The orchestrator of seed 003, by its own names: a plugin whose tools start those of other plugins in the
background. It keeps nothing itself; the plugins know their tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from meantime.dialects.jaato import AUTO_APPROVED, START, declarations, jaato_arguments, jaato_texts
from meantime.dialects.jaato.background_config import BackgroundConfig
from meantime.kernel.errors import InvalidInput
from meantime.toolset.arguments import Arguments, parsed

from .plugin_hooks import Executors
from .protocol import BackgroundCapable, TaskHandle
from .registry import PluginRegistry
from .task_answers import started_as
from .tool_executor import ToolExecutor, calling_executor

PLUGIN_KIND = "tool"
A = TypeVar("A", bound=Arguments)


class Registry(Protocol):
    """The part of a plugin that is used: ours has it, and so has the seed's."""

    def list_exposed(self) -> Sequence[str]: ...

    def get_plugin(self, name: str) -> Any: ...


@dataclass(frozen=True)
class UserCommand:
    """A person's command, with a slash before it; `run` takes the rest of the line."""

    name: str
    description: str
    usage: str
    run: Callable[[str], str]


class BackgroundPlugin:
    """Add it to a registry, which hands itself over by `set_registry`. The permission of the executor that
    calls it is asked for the tool that is to be started, too."""

    def __init__(self) -> None:
        self._registry: Registry | None = None

    @property
    def name(self) -> str:
        return "background"

    def set_registry(self, registry: Registry) -> None:
        self._registry = registry

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Nothing: the registry has the config."""

    def shutdown(self) -> None:
        """Ended tasks leave the listings; what runs goes on."""
        for plugin in self._capable().values():
            clean_up = getattr(plugin, "cleanup_completed", None)
            if clean_up is not None:
                clean_up(max_age_seconds=0)

    # -- for the model

    def get_function_declarations(self) -> list[dict[str, Any]]:
        """As Gemini takes them: `types.FunctionDeclaration(**one)`."""
        return declarations()

    def get_executors(self) -> Executors:
        return {
            START: partial(_checked, jaato_arguments.Start, self._start),
            "getBackgroundTaskStatus": partial(_checked, jaato_arguments.Status, self._status),
            "getBackgroundTaskResult": partial(_checked, jaato_arguments.Result, self._result),
            "cancelBackgroundTask": partial(_checked, jaato_arguments.Cancel, self._cancel),
            "listBackgroundTasks": partial(_checked, jaato_arguments.List, self._list),
            "listBackgroundCapableTools": partial(_checked, jaato_arguments.Capable, self._list_capable),
        }

    def get_system_instructions(self) -> str:
        registry = self._registry
        if not isinstance(registry, PluginRegistry):
            return jaato_texts.instructions(BackgroundConfig().background_threshold_seconds)
        auto = any(tool.threshold_seconds is not None for tool in registry.capable_tools())
        return jaato_texts.instructions(registry.config.background_threshold_seconds, auto=auto)

    def get_auto_approved_tools(self) -> list[str]:
        return list(AUTO_APPROVED)

    def get_user_commands(self) -> list[UserCommand]:
        return [
            UserCommand(*jaato_texts.TASKS_COMMAND, run=self._tasks_command),
            UserCommand(*jaato_texts.CANCEL_COMMAND, run=self._cancel_command),
        ]

    # -- its tools

    def _start(self, given: jaato_arguments.Start) -> dict[str, Any]:
        capable = self._capable()
        plugin = capable.get(given.plugin_name)
        if plugin is None:
            return jaato_texts.not_started(jaato_texts.plugin_not_capable(given.plugin_name, list(capable)))
        if not plugin.supports_background(given.tool_name):
            return jaato_texts.not_started(jaato_texts.tool_not_capable(given.plugin_name, given.tool_name))
        try:
            return started_as(self._begin(plugin, given))
        except Exception as problem:
            return jaato_texts.not_started(str(problem))

    def _begin(self, plugin: BackgroundCapable, given: jaato_arguments.Start) -> TaskHandle:
        """Under the permission and the limit that hold for a plain call of the tool."""
        registry, executor = self._registry, calling_executor()
        order = (given.tool_name, given.arguments, given.timeout_seconds)
        if not isinstance(registry, PluginRegistry):
            return plugin.start_background(*order)
        if executor is None or executor.registry is not registry:
            executor = ToolExecutor(registry)
        return executor.start_background(*order)

    def _status(self, given: jaato_arguments.Status) -> dict[str, Any]:
        id = given.task_id
        return self._of_plugin(
            id, lambda name, plugin: jaato_texts.status(id, name, plugin.get_status(id).value)
        )

    def _result(self, given: jaato_arguments.Result) -> dict[str, Any]:
        id = given.task_id

        def shown(name: str, plugin: BackgroundCapable) -> dict[str, Any]:
            found = plugin.get_result(id, wait=given.wait)
            word, seconds = found.status.value, found.duration_seconds
            return jaato_texts.result(id, name, word, found.result, found.error, seconds)

        return self._of_plugin(id, shown)

    def _cancel(self, given: jaato_arguments.Cancel) -> dict[str, Any]:
        id = given.task_id

        def cancelled(name: str, plugin: BackgroundCapable) -> dict[str, Any]:
            plugin.get_status(id)  # whether it has such a task
            return jaato_texts.cancelled(id, plugin.cancel(id))

        return self._of_plugin(id, cancelled)

    def _list(self, given: jaato_arguments.List) -> dict[str, Any]:
        return jaato_texts.listed([_row(handle) for handle in self._handles(given.plugin_name)])

    def _list_capable(self, given: jaato_arguments.Capable) -> dict[str, Any]:
        pairs: list[tuple[str, str]] = []
        for name, plugin in self._capable().items():
            tools: Executors = getattr(plugin, "get_executors", dict)()
            pairs += [(name, tool) for tool in tools if plugin.supports_background(tool)]
        return jaato_texts.capable(pairs)

    # -- for people

    def _tasks_command(self, rest: str) -> str:
        rows = [
            f"- '{handle.task_id}' ({handle.plugin_name}.{handle.tool_name}) {self._word(handle.task_id)}"
            for handle in self._handles(rest.strip())
        ]
        return "\n".join(rows) or "No background tasks."

    def _cancel_command(self, rest: str) -> str:
        id = rest.strip()
        if not id:
            return f"Usage: {jaato_texts.CANCEL_COMMAND[2]}"
        answer = self._cancel(jaato_arguments.Cancel(task_id=id))
        if "error" in answer:
            return answer["error"]
        if not answer["cancelled"]:
            return f"Task '{id}' would not stop and was left behind."
        return f"Task '{id}' is {self._word(id)}."

    def _word(self, id: str) -> str:
        return self._status(jaato_arguments.Status(task_id=id)).get("status", "gone")

    # -- the plugins

    def _capable(self) -> dict[str, BackgroundCapable]:
        """Looked up every time: plugins come and go."""
        registry = self._registry
        if registry is None:
            return {}
        found = {name: registry.get_plugin(name) for name in registry.list_exposed()}
        return {name: plugin for name, plugin in found.items() if isinstance(plugin, BackgroundCapable)}

    def _of_plugin(
        self, id: str, answer: Callable[[str, BackgroundCapable], dict[str, Any]]
    ) -> dict[str, Any]:
        """The answer of the first plugin that knows the task."""
        for name, plugin in self._capable().items():
            try:
                return answer(name, plugin)
            except KeyError:
                continue
        return {"error": jaato_texts.not_found(id)}

    def _handles(self, plugin_name: str | None) -> list[TaskHandle]:
        found: list[TaskHandle] = []
        for name, plugin in self._capable().items():
            if plugin_name in (None, "", name):
                found += getattr(plugin, "list_tasks", list)()
        return found


def _checked(takes: type[A], run: Callable[[A], dict[str, Any]], args: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a model are checked as they are declared; only `arguments` may be left out, as in the
    seed.
    """
    try:
        given = parsed(takes, {"arguments": {}, **args} if takes is jaato_arguments.Start else args)
    except InvalidInput as problem:
        return (
            jaato_texts.not_started(str(problem))
            if takes is jaato_arguments.Start
            else {"error": str(problem)}
        )
    return run(given)


def create_plugin() -> BackgroundPlugin:
    """For plugin discovery."""
    return BackgroundPlugin()


def _row(handle: TaskHandle) -> dict[str, Any]:
    return jaato_texts.one(
        handle.task_id,
        handle.plugin_name,
        handle.tool_name,
        handle.created_at.isoformat(),
        handle.estimated_duration_seconds,
    )
