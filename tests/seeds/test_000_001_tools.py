"""Seeds 000 and 001: the scenarios of their tools, which they share but for the names."""

from __future__ import annotations

import pytest
from speaking import PATIENCE, Speaker, until

from meantime import Meantime
from meantime.kernel.model import Failed
from meantime.testing import FakeSessionRunner, Reply, Session

pytestmark = pytest.mark.anyio


def answer(session: Session) -> str:
    return f"answer {len(session.history)}"


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner(
        {
            "explore": "4 modules",
            "busy": Reply("done", tools=("read", "read", "grep")),
            "broken": Reply(error=Failed("The disk is full.", code="disk")),
            "talker": answer,
        }
    )


@pytest.fixture(params=["background", "asyncagents"])
def agent(request: pytest.FixtureRequest, mt: Meantime) -> Speaker:
    return Speaker(mt, request.param)


async def test_000_001_launch_background_task(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    said = await agent.call("task", description="find the tests", prompt="Find them.", agent="explore")
    other = await agent.launch("another")
    assert "Status: running" in said.text
    assert said.data["status"] == "running"
    assert said.data["task_id"] != other
    assert (said.data["parentSessionID"], said.data["parentMessageID"]) == ("conv-1", "m-1")
    assert (said.data["description"], said.data["agent"]) == ("find the tests", "explore")


async def test_000_001_track_task_completion(agent: Speaker) -> None:
    id = await agent.done()
    task = (await agent.call("output", task_id=id)).data
    assert (task["status"], task["result"]) == ("completed", "4 modules")
    assert task["completedAt"] >= task["startedAt"]


async def test_000_001_handle_task_errors(agent: Speaker) -> None:
    id = await agent.done(agent="broken")
    said = await agent.call("output", task_id=id)
    assert (said.data["status"], said.data["error"]) == ("error", "The disk is full.")
    assert "Error: The disk is full." in said.text
    assert said.code == "", "that the task failed is no fault of this call"


async def test_000_001_cancel_running_tasks(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch()
    await until(lambda: agents.at_gate)
    said = await agent.call("cancel", task_id=id)
    assert said.text.startswith(f"Task {id} cancelled after ")
    assert agents.at_gate == [], "its work was stopped before the answer came"
    assert (await agent.call("output", task_id=id)).data["status"] == "cancelled"
    again = await agent.call("cancel", task_id=id)
    assert again.text == f"Task {id} is not running: it is cancelled."


async def test_000_001_cancel_running_tasks__that_finish_all_the_same(mt: Meantime) -> None:
    """MATRIX L7: what has finished first is completed, and the answer says so."""
    agent = Speaker(mt, "asyncagents")
    id = await agent.done()
    assert (await agent.call("cancel", task_id=id)).text == f"Task {id} is not running: it is completed."


async def test_000_001_track_resumed_status(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done()
    agents.hold()
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert "Status: resumed" in said.text
    assert said.data["status"] == "resumed"
    await until(lambda: agents.at_gate)
    assert (await agent.call("output", task_id=id)).data["status"] == "resumed"
    agents.release()
    await agent.thread.wait(id, timeout=PATIENCE)
    assert (await agent.call("output", task_id=id)).data["status"] == "completed"


async def test_000_001_retrieve_completed_task_results(agent: Speaker) -> None:
    id = await agent.done()
    assert (await agent.thread.get(id)).run.retrieved_at is None
    said = await agent.call("output", task_id=id)
    assert said.text.endswith("Result:\n4 modules")
    assert said.data["retrievedAt"] is not None
    assert (await agent.thread.get(id)).run.retrieved_at is not None


async def test_000_001_check_running_task_status(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch(agent="busy")
    await until(lambda: agents.at_gate)
    said = await agent.call("output", task_id=id)
    assert "Status: running" in said.text
    assert "Tool calls: 3" in said.text
    assert "retrievedAt" in said.data
    assert said.data["retrievedAt"] is None


async def test_000_001_task_persistence(agent: Speaker) -> None:
    """It is listed until it is cleared, however many end after it."""
    first = await agent.done("the first")
    for number in range(25):
        await agent.done(f"number {number}")
    assert f"- {first} [completed]" in (await agent.call("list")).text
    assert (await agent.call("clear")).text.startswith("Cleared 26 ended tasks.")
    assert (await agent.call("list")).text == "No background tasks found"
    assert (await agent.call("output", task_id=first)).data["result"] == "4 modules"


async def test_000_001_task_persistence__until_the_parent_ends(
    mt: Meantime, agent: Speaker, agents: FakeSessionRunner
) -> None:
    """What still runs is cancelled with its parent, and never another parent's."""
    agents.hold()
    other = Speaker(mt, agent.dialect, "conv-2")
    mine, theirs = await agent.launch(), await other.launch()
    await agent.thread.close()
    (ended,) = await agent.thread.wait(mine, timeout=PATIENCE)
    assert ended.status == "cancelled"
    assert (await agent.call("list")).text == "No background tasks found"
    assert (await other.call("output", task_id=theirs)).data["status"] == "running"


async def test_000_001_monitor_task_progress(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch(agent="busy")
    await until(lambda: agents.at_gate)
    said = await agent.call("output", task_id=id)
    progress = said.data["progress"]
    assert progress["toolCalls"] == 3
    assert progress["toolCallsByName"] == {"read": 2, "grep": 1}
    assert progress["lastTools"][-1] == "grep"
    assert f"Last update: {progress['lastUpdate']}" in said.text
    assert "Recent tools: " in said.text


async def test_000_001_group_related_tasks(agent: Speaker, agents: FakeSessionRunner) -> None:
    """What is launched while something of the thread runs belongs together."""
    agents.hold()
    ids = [await agent.launch(f"part {number}") for number in range(3)]
    batches = {(await agent.call("output", task_id=id)).data["batchId"] for id in ids}
    (batch,) = batches
    listed = (await agent.call("list", batch_id=batch)).data["tasks"]
    assert [task["task_id"] for task in listed] == list(reversed(ids))
    said = await agent.call("cancel", batch_id=batch)
    assert [task["status"] for task in said.data["tasks"]] == ["cancelled"] * 3
    assert (await agent.call("clear", batch_id=batch)).data == {"cleared": 3}


async def test_000_001_resume_completed_task_with_follow_up_prompt(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    id = await agent.done(agent="talker")
    agents.hold()
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.text.startswith("Resume #1 started in the background.")
    assert f"Task ID: {id} (resumed)" in said.text
    agents.release()
    await agent.thread.wait(id, timeout=PATIENCE)
    (session,) = agents.sessions.values()
    assert session.history == [
        ("user", "Find them."),
        ("assistant", "answer 1"),
        ("user", "And the docs?"),
        ("assistant", "answer 3"),
    ]


async def test_000_001_wait_for_resume_response(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done(agent="talker")
    await agent.call("task", resume=id, prompt="And the docs?")
    said = await agent.call("output", task_id=id, block=True)
    assert (said.data["status"], said.data["result"]) == ("completed", "answer 3")


async def test_000_001_handle_expired_session_on_resume(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done()
    agents.lose(f"s-{id}")
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.code == "session_gone"
    assert said.text.endswith(f"Start a new {agent.dialect}_task instead.")


async def test_000_001_increment_resume_count(agent: Speaker) -> None:
    id = await agent.done()
    for count in (1, 2):
        await agent.call("task", resume=id, prompt="More.")
        said = await agent.call("output", task_id=id, block=True)
        assert said.data["resumeCount"] == count
        assert f"Resume count: {count}" in said.text


async def test_000_001_initial_resume_count(agent: Speaker) -> None:
    id = await agent.launch()
    assert (await agent.call("output", task_id=id)).data["resumeCount"] == 0


async def test_000_001_show_resumed_indicator(agent: Speaker) -> None:
    id = await agent.done()
    await agent.call("task", resume=id, prompt="More.")
    await agent.thread.wait(id, timeout=PATIENCE)
    assert f"- {id} (resumed) [completed] explore:" in (await agent.call("list")).text


async def test_000_001_no_indicator_for_new_tasks(agent: Speaker) -> None:
    id = await agent.done()
    listed = (await agent.call("list")).text
    assert f"- {id} [completed] explore:" in listed
    assert "(resumed)" not in listed
    assert "(forked)" not in listed
