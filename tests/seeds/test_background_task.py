"""Seed 000: what its dialect alone says."""

from __future__ import annotations

import pytest
from speaking import Speaker
from tests.waiting import LIMIT, until_async

from meantime import Meantime
from meantime.testing import FakeSessionRunner, Session

pytestmark = pytest.mark.anyio


def answer(session: Session) -> str:
    return f"answer {len(session.history)}"


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner({"talker": answer})


@pytest.fixture
def agent(mt: Meantime) -> Speaker:
    return Speaker(mt, "background")


@pytest.mark.behaviour("H22")
async def test_the_five_tools_have_the_seeds_names(agent: Speaker) -> None:
    tools = {tool.name: list(tool.schema["properties"]) for tool in await agent.toolset.tools()}
    assert {name: sorted(parameters) for name, parameters in tools.items()} == {
        "background_task": ["agent", "description", "prompt", "resume"],
        "background_output": ["block", "task_id", "timeout"],
        "background_list": ["batch_id"],
        "background_cancel": ["batch_id", "task_id"],
        "background_clear": ["batch_id", "task_id"],
    }


@pytest.mark.behaviour("L21", "N13")
@pytest.mark.scenario("000", "Resume completion notification")
async def test_a_resumed_run_is_told_when_it_completes(agent: Speaker) -> None:
    id = await agent.done(agent="talker")
    assert len(await agent.told()) == 1
    await agent.call("task", resume=id, prompt="And the docs?")
    await agent.thread.wait(id, timeout=LIMIT)
    (told,) = await agent.told()
    assert told.role == "user"
    assert told.text.startswith(f'Resume #1 of background task {id} "find the tests" ended after ')
    assert "Status: completed" in told.text
    assert "\nanswer 3\n" in told.text


@pytest.mark.behaviour("N19", "R7")
@pytest.mark.scenario("000", "Resume completion notification")
async def test_reading_a_resumed_run_does_not_replace_its_notice(agent: Speaker) -> None:
    """MATRIX N19: in this dialect reading a result does not count as told."""
    async with agent.thread.turn() as turn:
        id = await agent.done()
        said = await agent.in_turn(turn).call("output", task_id=id)
        assert "Result:" in said.text
        assert said.reads == ()
        await turn.ack()
    assert len(await agent.told()) == 1


@pytest.mark.behaviour("L16", "R12")
@pytest.mark.scenario("000", "Reject resume of non-completed task")
async def test_a_resume_of_a_task_that_has_not_completed_is_refused(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    agents.hold()
    id = await agent.launch()
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.code == "not_completed"
    assert said.text == f"Only completed tasks can be resumed. Task {id} has the status running."
    await agent.call("cancel", task_id=id)
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.text == f"Only completed tasks can be resumed. Task {id} has the status cancelled."
    assert (await agent.thread.get(id)).resume_count == 0


@pytest.mark.behaviour("L18", "R12")
@pytest.mark.scenario("000", "Reject concurrent resume")
async def test_a_second_resume_at_the_same_time_is_refused(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done()
    agents.hold()
    await agent.call("task", resume=id, prompt="And the docs?")
    await until_async(lambda: agents.at_gate, "an agent is at the gate")
    said = await agent.call("task", resume=id, prompt="And the tests?")
    assert said.code == "being_resumed"
    assert said.text.startswith(f"Task {id} is currently being resumed.")
    assert (await agent.thread.get(id)).resume_count == 1


async def test_a_new_task_needs_all_three(agent: Speaker) -> None:
    said = await agent.call("task", prompt="Find them.")
    assert said.code == "invalid_input"
    assert "description, prompt and agent" in said.text
    assert (await agent.call("list")).text == "No background tasks found"
