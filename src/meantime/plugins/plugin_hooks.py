"""A plugin's statements about its tools, each with an answer that suits most."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from meantime.dialects.jaato.background_config import check_threshold
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Completed, Failed, Outcome
from meantime.kernel.work import Orderable

from .registry_state import Workshop

Executors = Mapping[str, Callable[[dict[str, Any]], Any]]
# Plugins exist that have hooks by their earlier names, which nothing calls any more. A hook takes the name of
# a tool and one thing more: methods of these names with other parameters are the plugin's own.
EARLIER = {
    "describe": "background_title",
    "present": "background_result",
    "work": "background_work",
}


class Hooks:
    """Override what does not suit; a plugin in no registry answers only what needs none."""

    background_tools: Collection[str] | None = None  # which tools are capable; None is all of them
    thresholds: Mapping[str, float | None] = {}  # by tool; one that is not named has the config's
    _workshop: Workshop | None = None

    if TYPE_CHECKING:
        name: Any  # a str; a plugin may have it as an attribute or as a property

        def get_executors(self) -> Executors: ...

    # -- what a plugin may say otherwise

    def supports_background(self, tool_name: str) -> bool:
        if tool_name not in self.get_executors():
            return False
        return self.background_tools is None or tool_name in self.background_tools

    def get_auto_background_threshold(self, tool_name: str) -> float | None:
        if not self.supports_background(tool_name):
            return None
        default = self.workshop.config.background_threshold_seconds
        return check_threshold(self.thresholds.get(tool_name, default), f"{self.name}.{tool_name}")

    def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        """Seconds, where nothing was learned yet; None if there is no telling."""
        return None

    def background_work(self, tool_name: str, arguments: dict[str, Any]) -> Orderable[Any] | None:
        """The work that a call of the tool is, where it is more than a Python function: `Shell(…)`."""
        return None

    def background_title(self, tool_name: str, arguments: dict[str, Any]) -> str:
        """The title of a task of this tool, for people and the agent."""
        return tool_name

    def timeout_of(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        """The timeout that the arguments themselves name."""
        return None

    def asks_for_background(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        """Whether the call itself says that nobody is going to wait for it."""
        return False

    def background_result(self, tool_name: str, outcome: Outcome) -> Any:
        """The visible part of an ending for `get_result`: the result, or what there was of one."""
        return outcome.result if isinstance(outcome, Completed) else outcome.partial

    def answer_to_failure(self, tool_name: str, failed: Failed) -> Any:
        """For tools to which some failures are answers, as an exit code is; None is a failure."""
        return None

    # -- the registry's side

    @property
    def workshop(self) -> Workshop:
        if self._workshop is None:
            raise RuntimeError(
                f"The plugin {self.name!r} is in no registry. Add it: PluginRegistry(mt, thread).add(plugin)."
            )
        return self._workshop

    def attach_to(self, workshop: Workshop | None) -> None:
        """The registry's side: a plugin works in one registry at a time."""
        for earlier, hook in EARLIER.items():
            method = getattr(self, earlier, None)
            is_hook = callable(method) and len(inspect.signature(method).parameters) == 2
            if is_hook and getattr(type(self), hook) is getattr(Hooks, hook):
                raise InvalidInput(
                    f"The plugin {self.name!r} has {earlier}(), which is not called: the hook is {hook}().",
                    hint=f"Rename it to {hook}. If {earlier}() is not a hook, define {hook}(), too.",
                )
        if workshop is not None and self._workshop not in (None, workshop):
            raise InvalidInput(
                f"The plugin {self.name!r} is in another registry.",
                hint="Remove it there, or make a new one.",
            )
        self._workshop = workshop
