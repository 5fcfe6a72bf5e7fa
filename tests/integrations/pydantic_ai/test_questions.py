"""Tools that need an approval, or that are carried out elsewhere, ask."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.exceptions import CallDeferred

from meantime import Agent, Meantime
from meantime.integrations.loops import PythonAgent
from meantime.testing import FakeClock

from .scripted import Script, call, until_waiting

pytestmark = pytest.mark.anyio


def careful(script: Script) -> PydanticAgent[None, str]:
    agent = PydanticAgent(script.model)

    @agent.tool_plain(requires_approval=True)
    def delete(name: str) -> str:
        return f"deleted {name}"

    @agent.tool_plain
    def weigh(thing: str) -> str:
        raise CallDeferred

    return agent


@pytest.mark.behaviour("L28")
async def test_an_approval_is_a_permission_of_the_task(ledger: str):
    script = Script(call("delete", name="x"), "gone")
    async with Meantime.open(ledger, agents={"careful": careful(script)}) as mt:
        handle = await mt.thread("t").start(Agent("careful", "clean up"))
        await until_waiting(mt, handle.id)
        question = (await handle.get()).question
        assert (question.kind, question.subject, question.arguments) == (
            "permission",
            "delete",
            {"name": "x"},
        )
        await mt.answer(handle.id, "allow")
        assert await handle.result() == "gone"
        assert script.asked[1].results == ["deleted x"]


@pytest.mark.behaviour("L28")
async def test_a_refusal_is_told_to_the_model(ledger: str):
    script = Script(call("delete", name="x"), "kept")
    async with Meantime.open(ledger, agents={"careful": careful(script)}) as mt:
        handle = await mt.thread("t").start(Agent("careful", "clean up"))
        await until_waiting(mt, handle.id)
        await mt.answer(handle.id, "reject: not that one")
        assert await handle.result() == "kept"
        assert script.asked[1].results == ["not that one"]


@pytest.mark.behaviour("L28")
async def test_an_answer_once_is_not_one_for_the_next_call_even_under_the_same_id(ledger: str):
    """Some models give every call the same id."""
    script = Script(call("delete", "same", name="x"), call("delete", "same", name="y"), "well")
    async with Meantime.open(ledger, agents={"careful": careful(script)}) as mt:
        handle = await mt.thread("t").start(Agent("careful", "clean up"))
        await until_waiting(mt, handle.id)
        first = (await handle.get()).question.id
        await mt.answer(handle.id, "allow")
        await until_waiting(mt, handle.id)
        assert (await handle.get()).question.id != first
        await mt.answer(handle.id, "reject")
        await handle.result()
        assert script.asked[-1].results[0] == "deleted x"
        assert "deleted" not in script.asked[-1].results[1]


@pytest.mark.parametrize(
    ("rules", "result"), [({"allow": ("delete",)}, "deleted x"), ({"deny": ("*",)}, "The rules")]
)
async def test_rules_decide_without_a_person(rules: dict[str, tuple[str, ...]], result: str):
    script = Script(call("delete", name="x"), "done")
    async with Meantime.open(":memory:", agents={"careful": PythonAgent(careful(script), **rules)}) as mt:
        assert await (await mt.thread("t").start(Agent("careful", "clean up"))).result() == "done"
        assert script.asked[1].results[0].startswith(result)


@pytest.mark.behaviour("L28")
async def test_a_tool_that_is_carried_out_elsewhere_gets_its_result_as_an_answer(ledger: str):
    script = Script(call("weigh", thing="stone"), "heavy")
    async with Meantime.open(ledger, agents={"careful": careful(script)}) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("careful", "how heavy is it?"))
        await until_waiting(mt, handle.id)
        assert (await handle.get()).question.text == 'weigh {"thing":"stone"}'
        await thread.answer(handle, "3 kg")
        assert await handle.result() == "heavy"
        assert script.asked[1].results == ["3 kg"]


async def test_a_question_that_nobody_answers_is_refused_in_time(clock: FakeClock):
    script = Script(call("delete", name="x"), "kept")
    employed = PythonAgent(careful(script), answer_within=60.0)
    async with Meantime.open(":memory:", agents={"careful": employed}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("careful", "clean up"))
        await until_waiting(mt, handle.id)
        await clock.advance_to_alarm(60.0)
        assert await handle.result() == "kept"
        assert script.asked[1].results == ["Nobody answered within 1m 0s."]
