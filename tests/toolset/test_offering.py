"""What an agent is offered: by what there is, what it may, and how deep it works."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from meantime import (
    Agent,
    Call,
    InvalidInput,
    Limits,
    Meantime,
    NotFound,
    Settings,
    Shell,
    Thread,
    Toolset,
    dialects,
)
from meantime.testing import FakeSessionRunner
from meantime.toolset.arguments import schema
from meantime.toolset.work_catalog import GivenWorks

pytestmark = pytest.mark.anyio


def index(folder: str) -> str:
    return f"indexed {folder}"


async def names(toolset: Toolset) -> list[str]:
    return [tool.name for tool in await toolset.tools()]


async def test_commands_and_functions_only_where_they_are_handed_over(thread: Thread) -> None:
    assert await names(thread.toolset(agents=None)) == ["remind", "output", "list", "wait", "cancel"]
    given = await names(thread.toolset(agents=None, tools={"index": index}, commands=Shell))
    assert given == [
        "start", "watch", "start_tool", "remind", "output", "list", "wait", "cancel", "send",
    ]  # fmt: skip
    refused = await thread.toolset(agents=None).call("start", {"command": "rm -rf /"})
    assert refused.code == "not_found"


async def test_a_model_that_chooses_an_agent_reads_what_each_is_for(thread: Thread) -> None:
    given = {"explore": "Finds things", "review": "Looks for mistakes", "other": ""}
    (start,) = [tool for tool in await thread.toolset(agents=given).tools() if tool.name == "start_agent"]
    assert start.schema["properties"]["agent"]["enum"] == list(given)
    assert start.description.splitlines()[1:] == ["- explore: Finds things", "- review: Looks for mistakes"]
    (start,) = [tool for tool in await thread.toolset(agents=["a"]).tools() if tool.name == "start_agent"]
    assert "\n" not in start.description


@pytest.mark.behaviour("F2")
async def test_a_function_is_offered_by_its_name(thread: Thread) -> None:
    toolset = thread.toolset(tools={"index": index})
    said = await toolset.call("start_tool", {"name": "index", "arguments": {"folder": "src"}})
    assert await thread.wait(said.data["id"])
    assert "indexed src" in (await toolset.call("output", {"id": said.data["id"]})).text
    wrong = await toolset.call("start_tool", {"name": "delete"})
    assert (wrong.code, "There are: index." in wrong.text) == ("not_found", True)
    for arguments in ({}, {"file": "x"}, {"no name": 1}):
        refused = await toolset.call("start_tool", {"name": "index", "arguments": arguments})
        assert refused.code == "invalid_input"
    assert len(await thread.list("all")) == 1


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"tools": [index]}, "mapping of names to functions, not list"),
    ({"tools": {"add": "x"}}, "'add' to str is none"),
    ({"tools": {1: index}}, "1 to function is none"),
    ({"commands": True}, "Use commands=Shell"),
    ({"agents": "explore"}, r"Use agents=\['explore'\]"),
    ({"agents": 5}, "agents must be a list, not int"),
    ({"agents": [index]}, "agents must hold str, not function"),
    ({"allow": "output"}, r"Use allow=\['output'\]"),
]


@pytest.mark.parametrize(("given", "said"), MISTAKES, ids=[str(given)[:30] for given, _ in MISTAKES])
async def test_a_program_is_told_what_it_handed_over_wrongly(
    thread: Thread, given: dict[str, Any], said: str
) -> None:
    """At once, and not its model at some later call."""
    with pytest.raises(InvalidInput, match=said):
        thread.toolset(**given)


@pytest.mark.behaviour("F19")
async def test_an_empty_whitelist_means_no_tools(thread: Thread) -> None:
    toolset = thread.toolset("background", allow=["background_list", "background_output"])
    assert await names(toolset) == ["background_output", "background_list"]
    refused = await toolset.call("background_task", {"description": "x", "prompt": "x", "agent": "explore"})
    assert refused.code == "not_found"
    assert await names(thread.toolset("background", allow=[])) == []
    assert await thread.toolset("background", allow=[]).guidance() == ""


@pytest.mark.behaviour("F20")
async def test_async_switched_off_takes_away_what_hands_off(thread: Thread) -> None:
    for dialect in ("meantime", "background", "asyncagents"):
        toolset = thread.toolset(dialect, tools={"index": index}, commands=Shell, background=False)
        assert not [tool.name for tool in await toolset.tools() if tool.starts]
        assert await toolset.guidance() == ""


@pytest.mark.behaviour("R4")
async def test_the_model_may_not_cancel(thread: Thread) -> None:
    toolset = thread.toolset("asyncagents", allow_model_cancel=False)
    assert "asyncagents_cancel" not in await names(toolset)
    assert (await toolset.call("asyncagents_cancel", {"task_id": "t_x"})).code == "not_found"


@pytest.mark.behaviour("F17")
@pytest.mark.parametrize(
    ("deepest", "depth", "may"), [(0, None, True), (0, 0, False), (2, 1, True), (2, 2, False)]
)
async def test_children_start_children_only_so_deep(deepest: int, depth: int | None, may: bool) -> None:
    """`depth` is that of the task that the agent works on; a conversation has none."""
    settings = Settings(limits=Limits(depth=deepest))
    async with Meantime.open(":memory:", settings=settings) as mt:
        toolset = mt.thread("conv-1").toolset("background", depth=depth)
        assert ("background_task" in await names(toolset)) is may


@pytest.mark.behaviour("F17")
@pytest.mark.embedded
async def test_work_that_runs_here_knows_how_deep_it_is() -> None:
    async with Meantime.open(":memory:", settings=Settings(limits=Limits(depth=0))) as mt:
        thread = mt.thread("conv-1")

        async def child() -> list[str]:
            return await names(thread.toolset("background"))

        assert "background_task" in await child()
        handle = await thread.start(Call(child))
        verbs = ("output", "list", "cancel", "clear")
        assert await handle.result() == [f"background_{verb}" for verb in verbs]


async def test_schemas_are_exported_for_every_api(thread: Thread) -> None:
    toolset = thread.toolset("background", agents=["explore"], allow=["background_output"])
    (openai,) = await toolset.schemas("openai")
    assert openai["type"] == "function"
    assert openai["function"]["parameters"]["required"] == ["task_id"]
    (anthropic,) = await toolset.schemas("anthropic")
    assert anthropic["input_schema"] == openai["function"]["parameters"]
    (mcp,) = await toolset.schemas("mcp")
    assert mcp["annotations"] == {"readOnlyHint": True, "openWorldHint": False}
    (gemini,) = await toolset.schemas("gemini")
    assert gemini["parameters"] == {
        "type": "OBJECT",
        "required": ["task_id"],
        "properties": {
            "task_id": {"type": "STRING", "description": "ID of the task."},
            "block": {"type": "BOOLEAN", "description": "Wait until the task has ended. Default: false."},
            "timeout": {
                "type": "NUMBER",
                "description": "Seconds to wait at most, with block.",
                "maximum": 600.0,
            },
        },
    }
    with pytest.raises(InvalidInput, match="openai, anthropic, mcp, gemini"):
        await toolset.schemas("cohere")  # type: ignore[arg-type]


async def test_agents_that_are_known_are_listed(thread: Thread) -> None:
    for agents, known in ((["explore", "review"], ["explore", "review"]), ([], None)):
        tools = {tool.name: tool for tool in await thread.toolset("asyncagents", agents=agents).tools()}
        assert tools["asyncagents_task"].schema["properties"]["agent"].get("enum") == known


async def test_a_name_that_is_no_dialect(thread: Thread, agents: FakeSessionRunner) -> None:
    with pytest.raises(NotFound, match="There are: asyncagents, background"):
        thread.toolset("klingon")
    with pytest.raises(NotFound, match="klingon"):
        await thread.reminder("klingon")
    await (await thread.start(Agent("explore", "look"))).wait()
    async with thread.turn() as turn:
        with pytest.raises(NotFound, match="klingon"):
            turn.render("klingon")
        assert turn.render("background")[0].text.startswith("Background task ")
        assert turn.render() == turn.render("meantime")


@pytest.mark.parametrize("dialect", dialects.names())
async def test_a_value_that_is_none_of_those_there_are_is_answered_with_them(
    thread: Thread, dialect: str
) -> None:
    """A model that gave something else is told the list, not only that it was wrong."""
    toolset = thread.toolset(dialect, agents=["explore"], tools={"index": index}, commands=Shell)
    for tool in await toolset.tools():
        for name, parameter in schema(tool.takes)["properties"].items():
            one = parameter.get("items", parameter)
            if "enum" not in one:
                continue
            given: dict[str, Any] = dict.fromkeys(tool.schema.get("required", ()), "x")
            given[name] = ["foo"] if one is not parameter else "foo"
            said = await toolset.call(tool.name, given)
            assert said.code, (tool.name, name)
            assert all(str(value) in said.text for value in one["enum"]), (tool.name, name, said.text)


async def test_a_constructor_gets_the_tools_without_awaiting(thread: Thread) -> None:
    toolset = thread.toolset(agents=["explore"], tools={"index": index}, commands=Shell)
    assert [tool.name for tool in toolset.declare()] == await names(toolset)


class AskedWorks(GivenWorks):
    """Agents that somebody has to be asked for, as through a connection."""

    async def agents(self) -> Mapping[str, str] | None:
        await asyncio.sleep(0)
        return await super().agents()


async def test_tools_that_must_be_asked_for_are_awaited_once_before(thread: Thread) -> None:
    toolset = Toolset(thread._tasks, AskedWorks(thread._tasks, ["explore"]), "conv-1")
    with pytest.raises(InvalidInput, match=r"Once before: await toolset\.tools\(\)"):
        toolset.declare()
    assert await toolset.tools() == toolset.declare()
