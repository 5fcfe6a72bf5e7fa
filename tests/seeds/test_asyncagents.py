"""Seed 001: what its dialect alone says. Its HTTP API is tested in tests/surfaces/http."""

from __future__ import annotations

from pathlib import Path

import pytest
from speaking import Speaker
from tests.waiting import LIMIT, until_async

from meantime import Agent, Meantime
from meantime.kernel.model import Failed
from meantime.testing import FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio
RUNNING = [
    "You can continue working or just say 'waiting' and halt.",
    "WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete.",
]


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner({"explore": "4 modules", "broken": Reply(error=Failed("The disk is full."))})


@pytest.fixture
def agent(mt: Meantime, monkeypatch: pytest.MonkeyPatch) -> Speaker:
    for name in ("NODE_ENV", "MEANTIME_ENV"):
        monkeypatch.delenv(name, raising=False)
    return Speaker(mt, "asyncagents")


@pytest.mark.behaviour("H22")
async def test_the_five_tools_have_the_seeds_names(agent: Speaker) -> None:
    tools = {tool.name: sorted(tool.schema["properties"]) for tool in await agent.toolset.tools()}
    assert tools == {
        "asyncagents_task": ["agent", "description", "fork", "prompt", "resume"],
        "asyncagents_output": ["block", "task_id", "timeout"],
        "asyncagents_list": ["batch_id"],
        "asyncagents_cancel": ["batch_id", "task_id"],
        "asyncagents_clear": ["batch_id", "task_id"],
    }


# -- forks


@pytest.mark.behaviour("F12")
async def test_a_fork_is_launched_and_marked(agent: Speaker, agents: FakeSessionRunner) -> None:
    """It returns at once with a task that is marked. What the fork inherits is its runner's affair."""
    agents.hold()
    said = await agent.call("task", description="go on", prompt="Go on.", agent="explore", fork=True)
    assert (said.data["status"], said.data["isForked"]) == ("running", True)
    assert (await agent.thread.get(said.data["task_id"])).forked


@pytest.mark.behaviour("F12")
@pytest.mark.scenario("001", "Validate mutually exclusive modes")
@pytest.mark.parametrize("more", [{}, {"description": "both", "agent": "explore"}])
async def test_fork_and_resume_exclude_each_other(agent: Speaker, more: dict[str, str]) -> None:
    id = await agent.done()
    said = await agent.call("task", fork=True, resume=id, prompt="Go on.", **more)
    assert said.code == "fork_and_resume"
    assert "mutually exclusive" in said.text
    assert [task.id for task in await agent.thread.list("all")] == [id]
    assert (await agent.thread.get(id)).resume_count == 0


@pytest.mark.behaviour("F12")
@pytest.mark.scenario("001", "Reject fork with resume")
async def test_a_fork_with_a_resume_is_refused_and_nothing_is_created(agent: Speaker) -> None:
    """At once: nothing is looked up first."""
    said = await agent.call("task", fork=True, resume="t_nothing", prompt="Go on.")
    assert said.code == "fork_and_resume"
    assert said.text.startswith("fork_and_resume: fork and resume are mutually exclusive")


@pytest.mark.behaviour("I11")
@pytest.mark.scenario("001", "Show forked indicator")
async def test_a_forked_task_is_marked_in_the_list(agent: Speaker) -> None:
    id = await agent.done(fork=True)
    assert f"- {id} (forked) [completed] explore:" in (await agent.call("list")).text


@pytest.mark.behaviour("I11")
@pytest.mark.scenario("001", "Fork indicator in task list")
async def test_the_list_shows_which_tasks_are_forks(agent: Speaker) -> None:
    """After the id, also where it was resumed; others have none."""
    plain, id = await agent.done(), await agent.done(fork=True)
    await agent.call("task", resume=id, prompt="More.")
    await agent.thread.wait(id, timeout=LIMIT)
    listed = (await agent.call("list")).text
    assert f"- {id} (resumed) (forked) [completed]" in listed
    assert f"- {plain} [completed]" in listed


# -- lists


@pytest.mark.behaviour("I9")
@pytest.mark.scenario("001", "Filter by parent session")
async def test_the_list_has_only_tasks_of_its_own_session(agent: Speaker, mt: Meantime) -> None:
    mine = await agent.done()
    other = Speaker(mt, "asyncagents", "conv-2")
    theirs = await other.done()
    listed = (await agent.call("list")).text
    assert mine in listed
    assert theirs not in listed
    hidden = await agent.call("output", task_id=theirs)
    assert hidden.code == "not_found"


@pytest.mark.behaviour("I12")
@pytest.mark.scenario("001", "Empty list for no children")
async def test_the_list_of_a_session_without_tasks_has_the_seeds_text(agent: Speaker, mt: Meantime) -> None:
    await Speaker(mt, "asyncagents", "conv-2").done()
    assert (await agent.call("list")).text == "No background tasks found"


# -- notifications


@pytest.mark.behaviour("N12", "N13")
@pytest.mark.scenario("001", "Task completion notification format")
async def test_a_completion_is_told_in_the_seeds_words(agent: Speaker) -> None:
    await agent.done()
    (told,) = await agent.told()
    visible, hidden = told.parts
    assert (visible.hidden, hidden.hidden) == (False, True)
    assert visible.text == '✓ **Agent "find the tests" finished in 0s.**\nTask Progress: 1/1'
    assert "4 modules" in hidden.text, "the result is for the model"


@pytest.mark.behaviour("N12", "N13")
@pytest.mark.scenario("001", "Task failure notification format")
async def test_a_failure_is_told_in_the_seeds_words(agent: Speaker) -> None:
    await agent.done(agent="broken")
    (told,) = await agent.told()
    visible, hidden = told.parts
    assert visible.text == '✗ **Agent "find the tests" failed in 0s.**\nTask Progress: 1/1'
    assert "Error: The disk is full." in hidden.text
    assert "Decide whether to try it in another way" in hidden.text


@pytest.mark.behaviour("N11", "N12")
@pytest.mark.scenario("001", "Task cancellation notification format")
async def test_a_cancellation_is_told_in_the_seeds_words(agent: Speaker, agents: FakeSessionRunner) -> None:
    agents.hold()
    id = await agent.launch()
    await agent.call("cancel", task_id=id)
    (told,) = await agent.told()
    visible, hidden = told.parts
    assert visible.text == '⊘ **Agent "find the tests" cancelled after 0s.**\nTask Progress: 1/1'
    assert "do not start it again" in hidden.text


@pytest.mark.behaviour("N13")
@pytest.mark.scenario("001", "Resume completion notification format")
async def test_the_completion_of_a_resume_is_told_in_the_seeds_words(agent: Speaker) -> None:
    id = await agent.done()
    await agent.told()
    await agent.call("task", resume=id, prompt="More.")
    await agent.thread.wait(id, timeout=LIMIT)
    (told,) = await agent.told()
    assert told.visible == "✓ **Resume #1 completed in 0s.**\nTask Progress: 1/1"
    assert told.parts[1].hidden
    assert "Use asyncagents_output tools to see agent responses." in told.parts[1].text


@pytest.mark.behaviour("N13")
@pytest.mark.scenario("001", "Resume failure notification format")
async def test_the_failure_of_a_resume_is_told_in_the_seeds_words(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    id = await agent.done()
    await agent.told()
    agents.fail_requests(400)
    await agent.call("task", resume=id, prompt="More.")
    await agent.thread.wait(id, timeout=LIMIT)
    (told,) = await agent.told()
    assert told.visible == "✗ **Resume #1 failed in 0s.**\nTask Progress: 1/1"
    assert "Error: The model answered HTTP 400." in told.parts[1].text


@pytest.mark.behaviour("N13")
@pytest.mark.scenario("001", "Hidden hint when tasks still running")
async def test_the_hidden_hint_says_that_other_tasks_still_run(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    agents.hold("slow")
    await agent.launch("the slow one", agent="slow")
    id = await agent.done()
    (told,) = await agent.told()
    assert told.visible.endswith("Task Progress: 1/2")
    hint = f'If you need results immediately, use asyncagents_output(task_id="{id}").'
    assert "\n".join([hint, *RUNNING]) in told.parts[1].text
    assert "tasks finished" not in told.parts[1].text


@pytest.mark.behaviour("N13")
@pytest.mark.scenario("001", "Hidden hint when all tasks complete")
async def test_the_hidden_hint_says_that_all_tasks_are_done(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    agents.hold("slow")
    slow = await agent.launch("the slow one", agent="slow")
    await agent.done()
    await agent.told()
    agents.release()
    await agent.thread.wait(slow, timeout=LIMIT)
    (told,) = await agent.told()
    assert told.visible.endswith("Task Progress: 2/2")
    done = "All 2 tasks finished.\nUse asyncagents_output tools to see agent responses."
    assert done in told.parts[1].text
    assert RUNNING[0] not in told.parts[1].text


@pytest.mark.behaviour("N14")
async def test_what_is_resumed_counts_as_running(agent: Speaker, agents: FakeSessionRunner) -> None:
    """Two of a batch are done; one of them is resumed: 1/2 while it runs."""
    agents.hold("slow")
    slow = await agent.launch("the slow one", agent="slow")
    first = await agent.done()
    await agent.told()
    agents.hold("explore")
    await agent.call("task", resume=first, prompt="More.")
    await until_async(lambda: first in agents.at_gate, "the first agent is at the gate")
    agents.release("slow")
    await agent.thread.wait(slow, timeout=LIMIT)
    (told,) = await agent.told()
    assert told.visible.endswith("Task Progress: 1/2")
    assert RUNNING[0] in told.parts[1].text


@pytest.mark.behaviour("N14", "R17")
async def test_progress_is_what_held_at_the_ending_and_not_when_it_is_told(
    agent: Speaker, agents: FakeSessionRunner
) -> None:
    """Three of a batch: the first ends, and is resumed before anybody is told."""
    agents.hold("slow")
    for number in range(2):
        await agent.launch(f"slow {number}", agent="slow")
    first = await agent.done("the first")
    agents.hold("explore")
    await agent.call("task", resume=first, prompt="More.")
    (told,) = await agent.told()
    assert told.visible.endswith("Task Progress: 1/3")


@pytest.mark.behaviour("N13", "N14", "R17")
async def test_a_resumed_task_joins_the_open_batch(agent: Speaker, agents: FakeSessionRunner) -> None:
    first = await agent.done("the first")
    agents.hold("slow", "explore")
    slow = await agent.launch("the slow one", agent="slow")
    await agent.call("task", resume=first, prompt="More.")
    agents.release("slow")
    await agent.thread.wait(slow, timeout=LIMIT)
    agents.release("explore")
    await agent.thread.wait(first, timeout=LIMIT)
    alone, half, all_done = await agent.told()
    assert alone.visible.endswith("Task Progress: 1/1")
    assert half.visible.endswith("Task Progress: 1/2")
    assert RUNNING[1] in half.parts[1].text
    assert all_done.visible.endswith("Task Progress: 2/2")
    assert "All 2 tasks finished." in all_done.parts[1].text


@pytest.mark.behaviour("N13", "N14", "R17")
async def test_a_named_batch_is_only_what_was_put_into_it(agent: Speaker, agents: FakeSessionRunner) -> None:
    """It neither takes others in nor closes the open batch; and while it runs, not all is finished."""
    agents.hold("slow", "named")
    slow = await agent.launch("the slow one", agent="slow")
    named = await agent.thread.start(Agent("named", "x"), batch="named")
    await agent.done("another")
    agents.release("named")
    await named.wait()
    later = await agent.launch("joins the slow one", agent="slow")
    agents.release("slow")
    await agent.thread.wait(slow, later, timeout=LIMIT)
    told = await agent.told()
    progress = [one.visible.rpartition(" ")[2] for one in told]
    assert progress == ["1/2", "1/1", "2/3", "3/3"]
    finished = ["tasks finished" in one.parts[1].text for one in told]
    assert finished == [False, False, False, True]


@pytest.mark.behaviour("N13", "N14", "R17", "L27")
async def test_a_batch_that_was_over_is_open_again_after_a_restart(
    agents: FakeSessionRunner, tmp_path: Path
) -> None:
    async with Meantime.open(tmp_path / "work.db", runners=[agents]) as mt:
        first = await Speaker(mt, "asyncagents").done("the first")
    agents.hold()
    async with Meantime.open(tmp_path / "work.db", runners=[agents]) as mt:
        agent = Speaker(mt, "asyncagents")
        await agent.call("task", resume=first, prompt="More.")
        second = await agent.launch("the second", agent="slow")
        agents.release()
        await agent.thread.wait(first, second, timeout=LIMIT)
        told = await agent.told()
    assert [one.visible.rpartition(" ")[2] for one in told] == ["1/1", "1/2", "2/2"]
    assert "All 2 tasks finished." in told[-1].parts[1].text
    assert "tasks finished" not in told[1].parts[1].text


@pytest.mark.behaviour("N15", "R18")
@pytest.mark.scenario("001", "Show indicator in development mode")
@pytest.mark.parametrize("name", ["NODE_ENV", "MEANTIME_ENV"])
async def test_development_mode_shows_that_a_hint_is_attached(
    agent: Speaker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "development")
    await agent.done()
    (told,) = await agent.told()
    assert told.visible.endswith("[hint attached]")


@pytest.mark.behaviour("N15", "R18")
@pytest.mark.scenario("001", "Hide indicator in production mode")
@pytest.mark.parametrize("value", [None, "production", "Development"])
async def test_production_mode_hides_that_a_hint_is_attached(
    agent: Speaker, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("NODE_ENV", value)
    await agent.done()
    (told,) = await agent.told()
    assert "[hint attached]" not in told.text


@pytest.mark.behaviour("N19", "R7")
async def test_an_ending_that_the_agent_read_is_not_told_again(agent: Speaker) -> None:
    """Together with the ack of the turn that held the read; without it, the notice comes."""
    for acked in (False, True):
        async with agent.thread.turn() as turn:
            id = await agent.done()
            said = await agent.in_turn(turn).call("output", task_id=id)
            assert said.reads == (f"{id}.1",)
            if acked:
                await turn.ack()
        assert len(await agent.told()) == (0 if acked else 1)
