"""The plugins of one conversation: which tools there are, whose they are, and which can run in the
background."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from msgspec import structs

from meantime.blocking import Meantime
from meantime.dialects.jaato.background_config import BackgroundConfig, check_threshold
from meantime.kernel.errors import InvalidInput, NotFound

from .background_mixin import RunsInBackground
from .protocol import BackgroundCapable
from .registry_state import Workshop


class ToolPlugin(Protocol):
    """The common part of every plugin. A tool is a callable that takes its arguments as one dict."""

    @property
    def name(self) -> str: ...

    def get_executors(self) -> Mapping[str, Callable[[dict[str, Any]], Any]]: ...


@runtime_checkable
class NeedsRegistry(Protocol):
    """A plugin that works with the others: it is handed the registry when it is added."""

    def set_registry(self, registry: PluginRegistry) -> None: ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it was when its plugin was added."""

    name: str
    plugin_name: str
    plugin: Any
    run: Callable[[dict[str, Any]], Any]
    is_async: bool
    capable: BackgroundCapable | None  # the plugin, where it offers the protocol
    ours: RunsInBackground | None  # the same, where it offers it through our runtime


@dataclass(frozen=True)
class CapableTool:
    """One line of the list of tools that can run in the background."""

    plugin_name: str
    tool_name: str
    threshold_seconds: float | None  # after this it goes to the background by itself; None: never
    estimated_duration_seconds: float | None


class PluginRegistry:
    """Tasks of its plugins belong to one thread of conversation, and share one config."""

    def __init__(self, mt: Meantime, thread: str, config: BackgroundConfig | None = None) -> None:
        if not isinstance(mt, Meantime):  # pyright: ignore[reportUnnecessaryIsInstance]  it comes from outside
            raise InvalidInput(
                f"A registry takes a blocking Meantime, not {type(mt).__name__}.",
                hint="Open it with `from meantime.blocking import Meantime`.",
            )
        self.config = config or BackgroundConfig(**structs.asdict(mt.plugin_defaults()))
        self.workshop = Workshop(mt, thread, self.config)
        self._plugins: dict[str, Any] = {}
        self._tools: dict[str, Tool] = {}

    def add(self, plugin: ToolPlugin) -> None:
        """Two plugins with one name, or with a tool of the same name, are refused; nothing is added."""
        name, tools = _tools_of(plugin)
        if name in self._plugins:
            raise InvalidInput(f"There is a plugin {name!r} already.", hint="Remove it first.")
        for tool in tools:
            other = self._tools.get(tool.name)
            if other is not None:
                raise InvalidInput(
                    f"The tool {tool.name!r} of plugin {name!r} is also one of plugin {other.plugin_name!r}.",
                    hint="Rename one of them, or remove a plugin: a model could not tell them apart.",
                )
        if isinstance(plugin, NeedsRegistry):
            plugin.set_registry(self)
        if isinstance(plugin, RunsInBackground):
            plugin.attach_to(self.workshop)
            self.workshop.admit(name)
        elif isinstance(plugin, BackgroundCapable):
            self.workshop.admit(name, lambda: _count(plugin))
        self._plugins[name] = plugin
        self._tools |= {tool.name: tool for tool in tools}

    def remove(self, name: str) -> None:
        """Its tasks keep running; whoever adds it again sees them again."""
        plugin = self.plugin(name)
        if isinstance(plugin, RunsInBackground):
            plugin.attach_to(None)
        self.workshop.dismiss(name)
        del self._plugins[name]
        self._tools = {known: tool for known, tool in self._tools.items() if tool.plugin_name != name}

    def plugin(self, name: str) -> Any:
        try:
            return self._plugins[name]
        except KeyError:
            known = ", ".join(self._plugins) or "none"
            raise NotFound(f"No plugin {name!r}.", hint=f"Known plugins: {known}.") from None

    def get_plugin(self, name: str) -> Any:
        """As the seed asks: None where there is none."""
        return self._plugins.get(name)

    def list_exposed(self) -> list[str]:
        return list(self._plugins)

    @property
    def plugins(self) -> Mapping[str, Any]:
        return dict(self._plugins)

    @property
    def capable_plugins(self) -> Mapping[str, BackgroundCapable]:
        found = {name: plugin for name, plugin in self._plugins.items() if _is_capable(plugin)}
        return cast("Mapping[str, BackgroundCapable]", found)

    def tool(self, name: str) -> Tool:
        found = self._tools.get(name)
        if found is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise NotFound(f"No tool {name!r}.", hint=f"Known tools: {known}.")
        return found

    def plugin_for(self, tool_name: str) -> Any:
        return self.tool(tool_name).plugin

    def threshold(self, tool: Tool) -> float | None:
        """Seconds after which a call of this tool is handed off; None where it never is."""
        if tool.ours is not None:
            return tool.ours.get_auto_background_threshold(tool.name)
        plugin: Any = tool.capable
        if plugin is None or not hasattr(plugin, "register_running_task"):
            return None
        ask = getattr(plugin, "get_auto_background_threshold", None)
        if ask is None or not plugin.supports_background(tool.name):
            return None
        return check_threshold(ask(tool.name), f"{tool.plugin_name}.{tool.name}")

    def capable_tools(self) -> list[CapableTool]:
        """All tools that can run in the background, in the order in which they were added."""
        found: list[CapableTool] = []
        for tool in list(self._tools.values()):
            if tool.capable is not None and tool.capable.supports_background(tool.name):
                guess = getattr(tool.capable, "estimate_duration", None)
                estimate = guess(tool.name, {}) if guess is not None else None
                found.append(CapableTool(tool.plugin_name, tool.name, self.threshold(tool), estimate))
        return found


def _is_capable(plugin: object) -> bool:
    return isinstance(plugin, BackgroundCapable)


def _tools_of(plugin: Any) -> tuple[str, list[Tool]]:
    name, executors = getattr(plugin, "name", None), getattr(plugin, "get_executors", None)
    if not isinstance(name, str) or not name or not callable(executors):
        raise InvalidInput(
            f"{type(plugin).__name__} is not a plugin.", hint="It needs a `name` and `get_executors()`."
        )
    found: Any = executors()
    if not isinstance(found, Mapping):
        raise InvalidInput(f"get_executors() of plugin {name!r} must give a dict of callables.")
    tools: list[Tool] = []
    for tool, run in cast("Mapping[Any, Any]", found).items():
        if not isinstance(tool, str) or not tool or not callable(run):
            raise InvalidInput(
                f"{tool!r} of plugin {name!r} is not a tool.", hint="A tool is a name and a callable."
            )
        capable = plugin if isinstance(plugin, BackgroundCapable) else None
        ours = plugin if isinstance(plugin, RunsInBackground) else None
        tools.append(Tool(tool, name, plugin, run, is_async(run), capable, ours))
    return name, tools


def is_async(run: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(type(run).__call__)


def _count(plugin: Any) -> int:
    """Tasks that a plugin of somebody else's keeps itself, as far as it says."""
    try:
        return len(plugin.list_tasks())
    except Exception:
        return 0  # it cannot say: its neighbours must not be refused for that
