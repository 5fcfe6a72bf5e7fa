"""Seeds 000 and 001: the scenarios of their tools, which they share but for the names."""

from __future__ import annotations

import pytest
from speaking import Speaker
from tests.waiting import LIMIT, until_async

from meantime import Agent, Meantime
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


@pytest.mark.behaviour("F1")
@pytest.mark.scenario("000", "Launch background task")
@pytest.mark.scenario("001", "Launch background task")
async def test_a_background_task_is_launched_and_answers_at_once(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    agents.hold()
    said = await agent.call("task", description="find the tests", prompt="Find them.", agent="explore")
    other = await agent.launch("another")
    assert "Status: running" in said.text
    assert said.data["status"] == "running"
    assert said.data["task_id"] != other
    assert (said.data["parentSessionID"], said.data["parentMessageID"]) == ("conv-1", "m-1")
    assert (said.data["description"], said.data["agent"]) == ("find the tests", "explore")


@pytest.mark.behaviour("L2")
@pytest.mark.scenario("000", "Track task completion")
@pytest.mark.scenario("001", "Track task completion")
async def test_a_completed_task_is_tracked(agent: Speaker) -> None:
    id = await agent.done()
    task = (await agent.call("output", task_id=id)).data
    assert (task["status"], task["result"]) == ("completed", "4 modules")
    assert task["completedAt"] >= task["startedAt"]


@pytest.mark.behaviour("L3")
@pytest.mark.scenario("000", "Handle task errors")
@pytest.mark.scenario("001", "Handle task errors")
async def test_an_error_of_a_task_is_tracked(agent: Speaker) -> None:
    id = await agent.done(agent="broken")
    said = await agent.call("output", task_id=id)
    assert (said.data["status"], said.data["error"]) == ("error", "The disk is full.")
    assert "Error: The disk is full." in said.text
    assert said.code == "", "that the task failed is no fault of this call"


@pytest.mark.behaviour("L9")
@pytest.mark.scenario("000", "Cancel running tasks")
@pytest.mark.scenario("001", "Cancel running tasks")
async def test_a_running_task_is_cancelled(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch()
    await until_async(lambda: agents.at_gate, "an agent is at the gate")
    said = await agent.call("cancel", task_id=id)
    assert said.text.startswith(f"Task {id} cancelled after ")
    assert agents.at_gate == [], "its work was stopped before the answer came"
    assert (await agent.call("output", task_id=id)).data["status"] == "cancelled"
    again = await agent.call("cancel", task_id=id)
    assert again.text == f"Task {id} is not running: it is cancelled."


@pytest.mark.behaviour("L7", "R3")
@pytest.mark.scenario("000", "Cancel running tasks")
@pytest.mark.scenario("001", "Cancel running tasks")
async def test_a_cancelled_task_that_finishes_first_is_completed(mt: Meantime) -> None:
    """MATRIX L7: what has finished first is completed, and the answer says so."""
    agent = Speaker(mt, "asyncagents")
    id = await agent.done()
    assert (await agent.call("cancel", task_id=id)).text == f"Task {id} is not running: it is completed."


@pytest.mark.behaviour("L16", "R2")
@pytest.mark.scenario("000", "Track resumed status")
@pytest.mark.scenario("001", "Track resumed status")
async def test_a_resumed_task_says_so_while_it_runs(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done()
    agents.hold()
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert "Status: resumed" in said.text
    assert said.data["status"] == "resumed"
    await until_async(lambda: agents.at_gate, "an agent is at the gate")
    assert (await agent.call("output", task_id=id)).data["status"] == "resumed"
    agents.release()
    await agent.thread.wait(id, timeout=LIMIT)
    assert (await agent.call("output", task_id=id)).data["status"] == "completed"


@pytest.mark.behaviour("L16", "R2")
@pytest.mark.scenario("000", "Track resumed status")
@pytest.mark.scenario("001", "Track resumed status")
async def test_a_resumed_task_says_so_while_it_waits_for_a_slot(
    agent: Speaker, agents: FakeSessionRunner, mt: Meantime
) -> None:
    """From the answer of the resume to the end of that run."""
    id = await agent.done()
    agents.hold()
    others = [await agent.launch("another") for _ in range(mt.limits().for_kind("agent"))]
    said = await agent.call("task", resume=id, prompt="And the docs?")
    task = await agent.thread.get(id)
    assert (task.status, said.data["status"]) == ("queued", "resumed")
    assert "Status: resumed" in (await agent.call("output", task_id=id)).text
    assert f"- {id} (resumed) [resumed] explore:" in (await agent.call("list")).text
    again = await agent.call("task", resume=id, prompt="And the tests?")
    assert again.code == "being_resumed"
    agents.release()
    await agent.thread.wait(id, *others, timeout=LIMIT)
    assert (await agent.call("output", task_id=id)).data["status"] == "completed"


@pytest.mark.behaviour("R17")
@pytest.mark.parametrize("session", [None, "s-known"])
async def test_the_session_id_of_a_task_never_changes(
    agent: Speaker, agents: FakeSessionRunner, session: str | None
) -> None:
    """It is the working session where that is known at the launch, otherwise the task for good."""
    agents.hold()
    if session is None:
        said = await agent.call("task", description="find", prompt="Find them.", agent="explore")
        id = called = said.data["task_id"]
        assert said.data["sessionID"] == id
    else:
        id = (await agent.thread.start(Agent("explore", "Find them."), session=session)).id
        called = session
    await until_async(lambda: id in agents.at_gate, "the agent works, in a session that is known by now")
    assert (await agent.call("output", task_id=id)).data["sessionID"] == called
    agents.release()
    await agent.thread.wait(id, timeout=LIMIT)
    assert (await agent.thread.get(id)).session == (session or f"s-{id}")
    for verb, arguments in (("output", {"task_id": called}), ("task", {"resume": called, "prompt": "More."})):
        assert (await agent.call(verb, **arguments)).data["sessionID"] == called
    await agent.thread.wait(id, timeout=LIMIT)
    assert [task["sessionID"] for task in (await agent.call("list")).data["tasks"]] == [called]


@pytest.mark.behaviour("R17")
async def test_every_tool_takes_the_session_in_place_of_the_task(
    agent: Speaker, agents: FakeSessionRunner, mt: Meantime
) -> None:
    id = await agent.done()
    session = (await agent.thread.get(id)).session
    assert session not in (None, id)
    assert (await agent.call("output", task_id=session)).data["task_id"] == id
    agents.hold()
    said = await agent.call("task", resume=session, prompt="More.")
    assert (said.data["task_id"], said.data["resumeCount"]) == (id, 1)
    assert (await agent.call("cancel", task_id=session)).text.startswith(f"Task {id} (resumed) cancelled")
    assert (await agent.call("clear", task_id=session)).data == {"cleared": 1}
    other = Speaker(mt, agent.dialect, "conv-2")
    assert (await other.call("output", task_id=session)).code == "not_found"


@pytest.mark.behaviour("I2")
@pytest.mark.scenario("000", "Retrieve completed task results")
@pytest.mark.scenario("001", "Retrieve completed task results")
async def test_the_result_of_a_completed_task_is_retrieved(agent: Speaker) -> None:
    id = await agent.done()
    assert (await agent.thread.get(id)).run.retrieved_at is None
    said = await agent.call("output", task_id=id)
    assert said.text.endswith("Result:\n4 modules")
    assert said.data["retrievedAt"] is not None
    assert (await agent.thread.get(id)).run.retrieved_at is not None


@pytest.mark.behaviour("I2")
@pytest.mark.scenario("000", "Check running task status")
@pytest.mark.scenario("001", "Check running task status")
async def test_the_status_of_a_running_task_is_seen(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch(agent="busy")
    await until_async(lambda: agents.at_gate, "an agent is at the gate")
    said = await agent.call("output", task_id=id)
    assert "Status: running" in said.text
    assert "Tool calls: 3" in said.text
    assert "retrievedAt" in said.data
    assert said.data["retrievedAt"] is None


@pytest.mark.behaviour("I14", "R16")
@pytest.mark.scenario("000", "Task persistence")
@pytest.mark.scenario("001", "Task persistence")
async def test_an_ended_task_stays_listed_until_it_is_cleared(agent: Speaker) -> None:
    """It is listed until it is cleared, however many end after it."""
    first = await agent.done("the first")
    for number in range(25):
        await agent.done(f"number {number}")
    assert f"- {first} [completed]" in (await agent.call("list")).text
    assert (await agent.call("clear")).text.startswith("Cleared 26 ended tasks.")
    assert (await agent.call("list")).text == "No background tasks found"
    assert (await agent.call("output", task_id=first)).data["result"] == "4 modules"


@pytest.mark.behaviour("I14", "L12", "R24")
@pytest.mark.scenario("000", "Task persistence")
@pytest.mark.scenario("001", "Task persistence")
async def test_an_ended_task_stays_listed_until_its_parent_ends(
    mt: Meantime, agent: Speaker, agents: FakeSessionRunner
) -> None:
    """What still runs is cancelled with its parent, and never another parent's."""
    agents.hold()
    other = Speaker(mt, agent.dialect, "conv-2")
    mine, theirs = await agent.launch(), await other.launch()
    await agent.thread.close()
    (ended,) = await agent.thread.wait(mine, timeout=LIMIT)
    assert ended.status == "cancelled"
    assert (await agent.call("list")).text == "No background tasks found"
    assert (await other.call("output", task_id=theirs)).data["status"] == "running"


@pytest.mark.behaviour("I1")
@pytest.mark.scenario("000", "Monitor task progress")
@pytest.mark.scenario("001", "Monitor task progress")
async def test_the_progress_of_a_task_is_seen(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch(agent="busy")
    await until_async(lambda: agents.at_gate, "an agent is at the gate")
    said = await agent.call("output", task_id=id)
    progress = said.data["progress"]
    assert progress["toolCalls"] == 3
    assert progress["toolCallsByName"] == {"read": 2, "grep": 1}
    assert progress["lastTools"][-1] == "grep"
    assert f"Last update: {progress['lastUpdate']}" in said.text
    assert "Recent tools: " in said.text


@pytest.mark.behaviour("L24")
@pytest.mark.scenario("000", "Group related tasks")
@pytest.mark.scenario("001", "Group related tasks")
async def test_related_tasks_share_a_batch(agent: Speaker, agents: FakeSessionRunner) -> None:
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


@pytest.mark.behaviour("L16")
@pytest.mark.scenario("000", "Resume completed task with follow-up prompt")
@pytest.mark.scenario("001", "Resume completed task with follow-up prompt")
async def test_a_completed_task_is_resumed_with_a_follow_up_prompt(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    id = await agent.done(agent="talker")
    agents.hold()
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.text.startswith("Resume #1 started in the background.")
    assert f"Task ID: {id} (resumed)" in said.text
    agents.release()
    await agent.thread.wait(id, timeout=LIMIT)
    (session,) = agents.sessions.values()
    assert session.history == [
        ("user", "Find them."),
        ("assistant", "answer 1"),
        ("user", "And the docs?"),
        ("assistant", "answer 3"),
    ]


@pytest.mark.behaviour("L16", "I3", "R6")
@pytest.mark.scenario("000", "Wait for resume response")
@pytest.mark.scenario("001", "Wait for resume response")
async def test_the_answer_of_a_resume_can_be_waited_for(agent: Speaker, agents: FakeSessionRunner) -> None:
    id = await agent.done(agent="talker")
    await agent.call("task", resume=id, prompt="And the docs?")
    said = await agent.call("output", task_id=id, block=True)
    assert (said.data["status"], said.data["result"]) == ("completed", "answer 3")


@pytest.mark.behaviour("L19")
@pytest.mark.scenario("000", "Handle expired session on resume")
@pytest.mark.scenario("001", "Handle expired session on resume")
async def test_a_resume_of_an_expired_session_is_refused_with_a_suggestion(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    id = await agent.done()
    agents.lose(f"s-{id}")
    said = await agent.call("task", resume=id, prompt="And the docs?")
    assert said.code == "session_gone"
    assert said.text.endswith(f"Start a new {agent.dialect}_task instead.")


@pytest.mark.behaviour("L20")
@pytest.mark.scenario("000", "Increment resume count")
@pytest.mark.scenario("001", "Increment resume count")
async def test_every_resume_is_counted(agent: Speaker) -> None:
    id = await agent.done()
    for count in (1, 2):
        await agent.call("task", resume=id, prompt="More.")
        said = await agent.call("output", task_id=id, block=True)
        assert said.data["resumeCount"] == count
        assert f"Resume count: {count}" in said.text


@pytest.mark.behaviour("L20")
@pytest.mark.scenario("000", "Initial resume count")
@pytest.mark.scenario("001", "Initial resume count")
async def test_a_new_task_has_no_resumes(agent: Speaker) -> None:
    id = await agent.launch()
    assert (await agent.call("output", task_id=id)).data["resumeCount"] == 0


@pytest.mark.behaviour("I11")
@pytest.mark.scenario("000", "Show resumed indicator")
@pytest.mark.scenario("001", "Show resumed indicator")
async def test_a_resumed_task_is_marked_in_the_list(agent: Speaker) -> None:
    id = await agent.done()
    await agent.call("task", resume=id, prompt="More.")
    await agent.thread.wait(id, timeout=LIMIT)
    assert f"- {id} (resumed) [completed] explore:" in (await agent.call("list")).text


@pytest.mark.behaviour("I11")
@pytest.mark.scenario("000", "No indicator for new tasks")
@pytest.mark.scenario("001", "No indicator for new tasks")
async def test_a_new_task_has_no_mark_in_the_list(agent: Speaker) -> None:
    id = await agent.done()
    listed = (await agent.call("list")).text
    assert f"- {id} [completed] explore:" in listed
    assert "(resumed)" not in listed
    assert "(forked)" not in listed
