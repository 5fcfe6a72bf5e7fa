"""The row of Pydantic AI in the guide's table; `tools=` and questions have files of their own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelResponse, RunContext, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from tests.waiting import LIMIT

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.kernel.budgets import Budget

pytestmark = pytest.mark.anyio
TABLE = Path(__file__).parents[2] / "frameworks" / "guide_table.py"  # read by the tests of the others, too
framework = "Pydantic AI"


def row() -> Any:
    spec = importlib.util.spec_from_file_location("guide_table", TABLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.rows()[framework]


async def ended(agent: Any, **settings: Any) -> Any:
    async with Meantime.open(":memory:", agents={"it": PythonAgent(agent, **settings)}) as mt:
        task = await mt.thread("t").start(Agent("it", "go"))
        (found,) = await mt.thread("t").wait(task, timeout=LIMIT)
        return found


def test_the_row_says_what_is_tested_here():
    assert row()[1:] == ("yes", "a tool that needs approval", "yes", "yes", "the run's deps")


async def test_a_cost_that_its_model_reports_counts():
    async def priced(*given: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart("ok")], model_name="gpt-4o", provider_name="openai")

    agent = PydanticAgent(FunctionModel(priced, model_name="gpt-4o"))
    found = await ended(agent, budget=Budget(cost=1e-9), last_turn=0)
    assert found.progress.cost > 0


async def test_a_model_of_the_settings_answers_in_place_of_its_own():
    async def never(*given: Any) -> ModelResponse:
        raise AssertionError("the agent's own model was asked")

    found = await ended(PydanticAgent(FunctionModel(never)), model="test")
    assert found.status is Status.COMPLETED


async def test_deps_are_those_of_the_run():
    agent = PydanticAgent(TestModel(), deps_type=dict)
    seen: list[str] = []

    @agent.tool
    def whoami(ctx: RunContext[dict[str, str]]) -> str:
        """Says who asks."""
        seen.append(ctx.deps["user"])
        return "seen"

    await ended(agent, deps={"user": "ann"})
    assert seen == ["ann"]
