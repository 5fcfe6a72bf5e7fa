"""A Pydantic AI agent and those that it starts share one budget: who meets its end hands in what it has."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from tests.waiting import until_async

from meantime import Agent, Completed, Failed, Meantime, Task
from meantime.integrations.loops import PythonAgent
from meantime.kernel.budgets import Budget

from .scripted import Script, call

pytestmark = pytest.mark.anyio
SPENT = "The budget of tool calls of all together is spent."


class Family:
    """A parent whose tool starts children, each with a script of its own, and waits for them."""

    def __init__(self, parent: Script, children: dict[str, Script], tree: Budget) -> None:
        self._mt: Meantime | None = None
        lead = PydanticAgent(parent.model)
        lead.tool_plain(self.delegate)
        self.agents: dict[str, Any] = {"lead": PythonAgent(lead, depth=1, tree=tree)}
        for name, script in children.items():
            child = PydanticAgent(script.model)
            child.tool_plain(look)
            self.agents[name] = PythonAgent(child)

    async def delegate(self, names: list[str]) -> str:
        assert self._mt is not None
        started = [await self._mt.thread("inner").start(Agent(name, "go"), id=name) for name in names]
        ended = [await handle.wait() for handle in started]
        found = [
            getattr(task.outcome, "result", None) or getattr(task.outcome, "partial", None) for task in ended
        ]
        return "; ".join(map(str, found))

    async def play(self, ledger: str) -> dict[str, Task]:
        async with Meantime.open(ledger, agents=self.agents) as self._mt:
            handle = await self._mt.thread("t").start(Agent("lead", "go"), id="lead")
            await handle.wait()
            return {task.id: task for task in await self._mt.list()}


def look(at: str) -> str:
    return f"saw {at}"


def looks(count: int) -> list[Any]:
    return [call("look", f"l{n}", at=f"place {n}") for n in range(count)]


@pytest.mark.behaviour("L15")
async def test_a_child_spends_what_its_parent_has_left(ledger: str):
    """Five calls for all: the parent's own two, two of its first child, and the first of its second."""
    left, right = Script(*looks(2), "left is done"), Script(*looks(9))
    right.steps.insert(1, "so far: place 0")  # what it says in its last turn
    parent = Script(
        call("delegate", "d1", names=["left"]), call("delegate", "d2", names=["right"]), "so far: left"
    )
    tasks = await Family(parent, {"left": left, "right": right}, Budget(tool_calls=5)).play(ledger)
    assert isinstance(tasks["left"].outcome, Completed)
    for name, partial in (("right", "so far: place 0"), ("lead", "so far: left")):
        outcome = tasks[name].outcome
        assert isinstance(outcome, Failed), tasks[name]
        assert (outcome.message, outcome.code, outcome.partial) == (SPENT, "budget_spent", partial)
    assert right.asked[-1].tools == parent.asked[-1].tools == [], "in a last turn there is nothing to call"
    assert [tasks[name].parent for name in ("left", "right")] == ["lead", "lead"]


@pytest.mark.behaviour("L15")
async def test_all_of_a_tree_are_stopped_and_each_keeps_its_own_work(ledger: str):
    """One child spends the rest while another is asking its model: the other is stopped at its next step."""
    goes, thinks = asyncio.Event(), asyncio.Event()
    quiet = Script(*looks(1), thinks, call("look", "l9", at="place 9"), "so far: one place")
    busy = Script(goes, *looks(3), "so far: three places")
    parent = Script(call("delegate", "d1", names=["quiet", "busy"]), "so far: two were at it")
    family = Family(parent, {"quiet": quiet, "busy": busy}, Budget(tool_calls=5))
    playing = asyncio.ensure_future(family.play(ledger))
    await quiet.waits.wait()
    goes.set()
    await until_async(lambda: len(busy.asked) >= 4, "the busy one has spent the rest")
    thinks.set()
    tasks = await playing
    partials = {name: getattr(tasks[name].outcome, "partial", None) for name in ("busy", "quiet", "lead")}
    assert partials == {
        "busy": "so far: three places", "quiet": "so far: one place", "lead": "so far: two were at it",
    }  # fmt: skip
    assert all(isinstance(task.outcome, Failed) and task.outcome.message == SPENT for task in tasks.values())
    assert "three places" in parent.asked[-1].results[0], "the parent has read what its children handed in"
