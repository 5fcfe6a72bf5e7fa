"""F16: which tools there are, whose they are, and which of them can run in the background."""

from __future__ import annotations

from typing import Any

import pytest
from tests.waiting import LIMIT
from toolbox import Files, Foreign

from meantime import InvalidInput, NotFound
from meantime import Meantime as AsyncMeantime
from meantime.blocking import Meantime
from meantime.plugins import CapableTool, PluginRegistry


class Plain:
    """A plugin that knows nothing of the background."""

    name = "plain"

    def get_executors(self) -> dict[str, Any]:
        return {"add": lambda args: args["a"] + args["b"]}


@pytest.mark.behaviour("F16")
def test_capable_tools_are_listed_with_thresholds_and_estimates(registry: PluginRegistry, files: Files):
    files.background_tools = {"slow", "quick"}
    files.guess_duration = lambda tool_name, arguments: 4.0 if tool_name == "slow" else None
    registry.add(Plain())
    registry.add(Foreign())
    assert registry.capable_tools() == [
        CapableTool("files", "quick", LIMIT, None),
        CapableTool("files", "slow", 0.01, 4.0),
        CapableTool("foreign", "lookup", 0.01, None),
    ]
    assert set(registry.capable_plugins) == {"files", "foreign"}
    assert set(registry.plugins) == {"files", "plain", "foreign"}


def test_the_plugin_of_a_tool(registry: PluginRegistry, files: Files):
    assert registry.plugin_for("slow") is files
    with pytest.raises(NotFound, match=r"No tool 'nothing'. Known tools: fails, never, polite"):
        registry.plugin_for("nothing")
    with pytest.raises(NotFound, match=r"No plugin 'nobody'. Known plugins: files"):
        registry.plugin("nobody")


def test_two_plugins_with_the_same_tool_are_refused(registry: PluginRegistry, files: Files):
    with pytest.raises(InvalidInput, match="'quick' of plugin 'copy' is also one of plugin 'files'"):
        registry.add(Files("copy"))
    with pytest.raises(InvalidInput, match="There is a plugin 'files' already"):
        registry.add(Files(prefix="x_"))
    assert set(registry.plugins) == {"files"}
    registry.remove("files")
    registry.add(Files("copy"))


@pytest.mark.parametrize(
    ("earlier", "hook"),
    [
        ("describe", "background_title"),
        ("present", "background_result"),
        ("work", "background_work"),
    ],
)
def test_a_hook_by_its_earlier_name_is_refused_and_the_error_names_the_hook(
    registry: PluginRegistry, earlier: str, hook: str
):
    def anything(self: Files, tool_name: str, given: Any) -> Any:
        return getattr(super(type(self), self), hook)(tool_name, given)

    old = type("Old", (Files,), {earlier: anything})("old")
    with pytest.raises(InvalidInput, match=rf"'old' has {earlier}\(\).*the hook is {hook}\(\)"):
        registry.add(old)
    assert "old" not in registry.plugins
    registry.add(type("Both", (Files,), {earlier: anything, hook: anything})("both", prefix="both_"))


@pytest.mark.parametrize(
    ("name", "executors", "says"),
    [
        ("", {}, "is not a plugin"),
        (None, {}, "is not a plugin"),
        ("x", None, "must give a dict"),
        ("x", ["tool"], "must give a dict"),
        ("x", {"tool": 4}, "is not a tool"),
        ("x", {"": len}, "is not a tool"),
        ("x", {4: len}, "is not a tool"),
    ],
)
def test_what_is_no_plugin_is_refused(registry: PluginRegistry, name: Any, executors: Any, says: str):
    plugin = type("Odd", (), {"name": name, "get_executors": lambda self: executors})()
    with pytest.raises(InvalidInput, match=says):
        registry.add(plugin)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="is not a plugin"):
        registry.add(object())  # pyright: ignore[reportArgumentType]
    assert registry.plugins == {}


def test_a_registry_needs_a_blocking_meantime(mt: Meantime):
    with pytest.raises(InvalidInput, match="blocking Meantime"):
        PluginRegistry(AsyncMeantime.open(":memory:"), "conv-1")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="not a valid id"):
        PluginRegistry(mt, "no spaces")


@pytest.mark.behaviour("F5")
@pytest.mark.parametrize("threshold", [-1, float("nan"), "10", True])
def test_a_threshold_that_makes_no_sense_is_refused(registry: PluginRegistry, threshold: Any):
    foreign = Foreign()
    foreign.get_auto_background_threshold = lambda tool_name: threshold
    registry.add(foreign)
    with pytest.raises(InvalidInput, match=r"foreign\.lookup gives .* as a threshold"):
        registry.threshold(registry.tool("lookup"))
