"""Seed 002 in its own words: one test for each numbered section and each design decision."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, InvalidInput, Meantime, Settings
from meantime.dialects import dialect
from meantime.dialects.llxprt import llxprt_texts, message_bus
from meantime.kernel.model import Failed
from meantime.testing import FakeClock, FakeSessionRunner
from meantime.testing.fake_session_runner import Reply
from meantime.toolset.toolset import Toolset
from meantime.toolset.work_catalog import GivenWorks

pytestmark = pytest.mark.anyio


class World:
    def __init__(self, mt: Meantime, agents: FakeSessionRunner, clock: FakeClock) -> None:
        self.mt, self.agents, self.clock = mt, agents, clock
        self.thread = mt.thread("conv-1")
        works = GivenWorks(self.thread._tasks)
        self.tools = Toolset(self.thread._tasks, works, "conv-1", "llxprt")

    async def launch(self, name: str = "researcher", goal: str = "find it") -> str:
        given = {"subagent_name": name, "goal_prompt": goal, "async": True}
        said = await self.tools.call("task", given)
        assert not said.code, said
        return said.data["agentId"]

    async def short(self, id: str) -> str:
        return id.removeprefix("t_")[:8]

    async def held(self) -> None:
        await until_async(lambda: self.agents.at_gate, "the agent is at the gate")


REPLIES: dict[str, Any] = {
    "researcher": Reply("found it", emits={"files": 3}, final_message="All found."),
    "broken": Reply(error=Failed("no such file")),
}


@pytest.fixture
async def world():
    agents, clock = FakeSessionRunner(REPLIES), FakeClock()
    async with Meantime.open(":memory:", runners=[agents], clock=clock, settings=Settings()) as mt:
        yield World(mt, agents, clock)


@pytest.mark.behaviour("H19")
@pytest.mark.scenario("002", "section 1")
async def test_the_bus_has_the_seeds_four_messages(world: World):
    await world.thread.wait(await world.launch())
    await world.thread.wait(await world.launch("broken"))
    world.agents.hold()
    id = await world.launch()
    await world.held()
    await world.tools.command(f"/task end {id}")
    found = []
    async for event in world.mt.events():
        if (message := message_bus.message(event, await world.mt.get(event.task_id))) is not None:
            found.append(message)
        if len(found) == 6:
            break
    assert [message["type"] for message in found] == [
        "async-task-launched", "async-task-completed", "async-task-launched", "async-task-failed",
        "async-task-launched", "async-task-cancelled",
    ]  # fmt: skip
    launched, completed, _, failed = found[:4]
    assert (launched["subagentName"], launched["goalPrompt"]) == ("researcher", "find it")
    assert completed["output"] == {
        "terminate_reason": "GOAL", "emitted_vars": {"files": 3}, "final_message": "All found.",
    }  # fmt: skip
    assert failed["error"] == "no such file"
    assert all(isinstance(message["timestamp"], int) for message in found)


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("002", "section 2")
async def test_the_summary_counts_tasks_by_status(world: World):
    assert llxprt_texts.summary([]) == ""
    done = await world.launch()
    await world.thread.wait(done)
    broken = await world.launch("broken")
    await world.thread.wait(broken)
    world.agents.hold()
    runs = await world.launch()
    tasks = [await world.mt.get(id) for id in (done, broken, runs)]
    short = [await world.short(id) for id in (done, broken, runs)]
    assert llxprt_texts.summary(tasks) == (
        "\n[ASYNC TASKS: 3 total - 1 running, 1 completed, 1 failed]\n"
        f"[1] researcher ({short[0]}) - [DONE] completed\n"
        f"[2] broken ({short[1]}) - [FAILED] failed\n"
        f"[3] researcher ({short[2]}) - [RUNNING] running"
    )


@pytest.mark.behaviour("H19")
@pytest.mark.scenario("002", "section 1")
async def test_the_bus_of_a_thread_fires_from_the_subscription_on(world: World):
    await world.thread.wait(await world.launch())
    other = world.mt.thread("conv-2")
    bus = await world.thread.toolset("llxprt").bus()
    await other.wait(await other.start(Agent("researcher", "elsewhere")))
    id = await world.launch("broken", "try")
    async with asyncio.timeout(LIMIT):
        launched, failed = await anext(bus), await anext(bus)
    assert (launched["type"], launched["taskId"]) == ("async-task-launched", id)
    assert launched["goalPrompt"] == "try"
    assert (failed["type"], failed["taskId"], failed["error"]) == ("async-task-failed", id, "no such file")


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("002", "section 2")
async def test_the_summary_of_a_thread_is_in_launch_order(world: World):
    tools = world.thread.toolset("llxprt")
    assert await tools.summary() == ""
    world.agents.hold("researcher")
    first = await world.launch()
    await world.clock.advance(1)
    second = await world.launch("broken")
    await world.thread.wait(second)
    short = [await world.short(id) for id in (first, second)]
    assert await tools.summary() == (
        "\n[ASYNC TASKS: 2 total - 1 running, 0 completed, 1 failed]\n"
        f"[1] researcher ({short[0]}) - [RUNNING] running\n"
        f"[2] broken ({short[1]}) - [FAILED] failed"
    )


async def test_a_dialect_without_a_bus_says_so(world: World):
    for ask in (world.thread.toolset("psi").bus, world.thread.toolset("psi").summary):
        with pytest.raises(InvalidInput, match="The dialect psi has no"):
            await ask()


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("002", "section 5")
async def test_lists_are_in_launch_order_whichever_ends_first(world: World):
    ids: list[str] = []
    world.agents.hold("slow", "researcher", "broken")
    for name in ("slow", "researcher", "broken"):
        ids.append(await world.launch(name))
        await world.clock.advance(1)
    for name in ("broken", "researcher", "slow"):
        world.agents.release(name)
        await world.thread.wait(ids[["slow", "researcher", "broken"].index(name)])
        listed = (await world.tools.call("check_async_tasks", {})).text
        shown = (await world.tools.command("/tasks list")).text
        reminder = await world.thread.reminder("llxprt")
        for text in (listed, shown):
            places = [text.index(await world.short(id)) for id in ids]
            assert places == sorted(places), text
    ended = [reminder.index(await world.short(id)) for id in ids]
    assert ended == sorted(ended), reminder


@pytest.mark.behaviour("F20")
@pytest.mark.scenario("002", "section 3")
async def test_async_is_a_parameter_and_can_be_switched_off(world: World):
    (task, _) = await world.tools.tools()
    described = task.schema["properties"]["async"]
    assert described["type"] == "boolean"
    assert described["description"] == (
        "When true, launches the subagent asynchronously without blocking. The foreground agent continues "
        "immediately and receives a notification when the task completes. Use check_async_tasks tool to "
        "monitor status."
    )
    (alone,) = await world.thread.toolset("llxprt", background=False).tools()
    assert "async" not in alone.schema["properties"]
    refused = await world.thread.toolset("llxprt", background=False).call(
        "task", {"subagent_name": "researcher", "goal_prompt": "x", "async": True}
    )
    assert refused.code == "invalid_input"


@pytest.mark.behaviour("F1")
@pytest.mark.scenario("002", "section 4")
async def test_a_launch_returns_at_once_and_says_so(world: World):
    world.agents.hold()
    said = await world.tools.call("task", {"subagent_name": "researcher", "goal_prompt": "x", "async": True})
    id = said.data["agentId"]
    assert said.text == (
        f"Async task 'researcher' launched with ID {id}. The task is now running in the background. "
        "You will be notified when it completes. Use check_async_tasks to monitor progress."
    )
    shown = f" Launched async task: **researcher** (`{await world.short(id)}`)"
    assert said.data == {"agentId": id, "async": True, "status": "running", "returnDisplay": shown}


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("002", "section 4")
async def test_without_async_the_output_is_the_answer(world: World):
    said = await world.tools.call("task", {"subagent_name": "researcher", "goal_prompt": "x"})
    id = said.data["agent_id"]
    whole = {
        "agent_id": id, "terminate_reason": "GOAL", "emitted_vars": {"files": 3},
        "final_message": "All found.",
    }  # fmt: skip
    assert said.text == json.dumps(whole, indent=2)
    assert not said.code
    assert world.agents.sessions[f"s-{id}"], "it is the id of the subagent that answered"
    assert await world.mt.list("all") == []


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("002", "section 4")
async def test_a_failure_without_async_has_the_form_of_its_notice(world: World):
    said = await world.tools.call("task", {"subagent_name": "broken", "goal_prompt": "x"})
    id = said.data["agent_id"]
    error = {"agent_id": id, "terminate_reason": "ERROR", "emitted_vars": {}, "error": "no such file"}
    assert (said.text, said.code) == (json.dumps(error, indent=2), "task_failed")


@pytest.mark.behaviour("F6", "R19")
@pytest.mark.scenario("002", "section 4")
async def test_a_timeout_without_async_keeps_what_was_emitted(world: World):
    world.agents.hold()
    given = {"subagent_name": "researcher", "goal_prompt": "x", "timeout_seconds": 2}
    calling = asyncio.ensure_future(world.tools.call("task", given))
    await world.held()
    await world.clock.advance(3)
    said = await asyncio.wait_for(calling, LIMIT)
    assert (said.data["terminate_reason"], said.data["emitted_vars"]) == ("TIMEOUT", {"files": 3})
    assert (said.data["error"], said.code) == ("Timed out after 2 seconds.", "task_timed_out")


@pytest.mark.behaviour("F1")
@pytest.mark.scenario("002", "section 4")
async def test_a_subagent_is_told_its_prompt_and_its_goal_is_listed(world: World):
    given = {
        "subagent_name": "researcher", "goal_prompt": "find it", "async": True,
        "behaviour_prompts": ["Be brief."], "context": {"folder": "src"},
        "output_spec": {"files": "how many"}, "tool_whitelist": ["read"],
    }  # fmt: skip
    id = (await world.tools.call("task", given)).data["agentId"]
    (task,) = await world.thread.wait(id)
    assert world.agents.sessions[f"s-{id}"].history[0][1] == (
        'find it\n\nBe brief.\n\nContext:\n{\n  "folder": "src"\n}\n\n'
        "When you are done, give these values by name:\n- files: how many"
    )
    assert task.work.input["tools"] == ["read"]
    assert llxprt_texts.goal(task) == "find it"


@pytest.mark.behaviour("F13")
@pytest.mark.scenario("002", "section 4")
async def test_a_subagent_that_cannot_be_launched_is_a_refusal(world: World):
    works = GivenWorks(world.thread._tasks, ["researcher"])
    tools = Toolset(world.thread._tasks, works, "conv-1", "llxprt")
    said = await tools.call("task", {"subagent_name": "nobody", "goal_prompt": "x", "async": True})
    assert said.text.startswith("Failed to launch async subagent 'nobody'.\n")
    assert said.code == "not_found"


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("002", "section 5")
async def test_tasks_are_listed_and_peeked_at(world: World):
    assert (await world.tools.call("check_async_tasks", {})).text == "No async tasks."
    world.agents.hold()
    id = await world.launch()
    await world.held()
    short = await world.short(id)
    listed = await world.tools.call("check_async_tasks", {})
    assert (listed.text, listed.data) == (f"Async Tasks:\n- running: researcher ({short})", {"count": 1})
    await world.clock.advance(1.5)
    peeked = (await world.tools.call("check_async_tasks", {"task_id": short[:5]})).text
    head = f"Task: researcher ({id})\nStatus: running\nElapsed: 1.5s\nGoal: find it\n\n"
    assert peeked == f'{head}Emitted so far:\n{{\n  "files": 3\n}}'
    world.agents.release()
    await world.thread.wait(id)
    done = (await world.tools.call("check_async_tasks", {"task_id": id})).text
    head = f"Task: researcher ({id})\nStatus: completed\nDuration: 1.5s\nGoal: find it\n\nOutput:\n"
    assert done == head + json.dumps(
        {"agent_id": id, "terminate_reason": "GOAL", "emitted_vars": {"files": 3},
         "final_message": "All found."}, indent=2,
    )  # fmt: skip
    failed = await world.launch("broken")
    await world.thread.wait(failed)
    said = (await world.tools.call("check_async_tasks", {"task_id": failed})).text
    assert said.endswith("\n\nError: no such file")
    missing = await world.tools.call("check_async_tasks", {"task_id": "zzz"})
    assert (missing.text, missing.code) == ("Task not found: zzz", "not_found")
    assert (await world.tools.call("check_async_tasks", {"task_id": ""})).data == {"count": 2}


@pytest.mark.behaviour("L9")
@pytest.mark.scenario("002", "section 6")
async def test_people_list_tasks_and_end_one(world: World):
    assert (await world.tools.command("/tasks")).text == "No async tasks"
    assert (await world.tools.command("/task end")).text == (
        "Usage: /task end <task-id>\n\nUse /tasks list to see task IDs."
    )
    world.agents.hold()
    id = await world.launch(goal="g" * 80)
    await world.held()
    short = await world.short(id)
    await world.clock.advance(2)
    for line in ("/tasks", "/tasks list"):
        assert (await world.tools.command(line)).text == (
            f"Async Tasks:\n\n1.  [{short}] researcher\n   Status: running | Duration: 2.0s elapsed\n"
            f"   Goal: {'g' * 60}...\n"
        )
    assert (await world.tools.command("/task end nope")).text == "Task not found: nope"
    assert (await world.tools.command(f"/task end {short}")).text == f"Cancelled task: researcher ({short})"
    again = await world.tools.command(f"/task end {short}")
    assert (again.text, again.code) == (f"Task {short} is not running (status: cancelled)", "not_running")


@pytest.mark.behaviour("M1", "H24")
@pytest.mark.scenario("002", "section 7")
async def test_task_max_async_is_set_and_checked(world: World):
    for wrong in ("0", "-2", "many", "", "nan", "inf", "1e300", "1000001"):
        said = await world.tools.command(f"/set task-max-async {wrong}")
        assert said.text == "task-max-async must be a positive number or -1 for unlimited"
        assert said.code == "invalid_input"
    await world.tools.command("/set task-max-async 2.5")
    assert world.mt.limits().for_kind("agent") == 3, "any positive number: as many as begin before it is full"
    await world.tools.command("/set task-max-async 7")
    assert world.mt.limits().for_kind("agent") == 7
    await world.tools.command("/set task-max-async -1")
    assert world.mt.limits().for_kind("agent") == -1


@pytest.mark.behaviour("N7")
@pytest.mark.scenario("002", "section 8")
async def test_the_reminder_and_the_notes_of_endings_have_the_seeds_words(world: World):
    speaks = dialect("llxprt")
    assert await world.thread.reminder("llxprt") == ""
    done, broken = await world.launch(), await world.launch("broken")
    await world.thread.wait(done, broken)
    world.agents.hold()
    runs = await world.launch()
    short = [await world.short(id) for id in (runs, done, broken)]
    assert await world.thread.reminder("llxprt") == (
        "---\nSystem Note: Async tasks status:\n"
        f"Running: [{short[0]}] researcher\n"
        f"Completed (pending acknowledgement): [{short[1]}] researcher, [{short[2]}] broken\n---"
    )
    async with world.thread.turn() as turn:
        completed, failed = (speaks.message(notice).text for notice in turn.notices)
        await turn.ack()
    whole = {
        "agent_id": done, "terminate_reason": "GOAL", "emitted_vars": {"files": 3},
        "final_message": "All found.",
    }  # fmt: skip
    assert completed == (
        f"---\nSystem Note: Async task 'researcher' completed:\n{json.dumps(whole, indent=2)}\n---"
    )
    error = {"agent_id": broken, "terminate_reason": "ERROR", "emitted_vars": {}, "error": "no such file"}
    assert failed == f"---\nSystem Note: Async task 'broken' failed:\n{json.dumps(error, indent=2)}\n---"


@pytest.mark.behaviour("N7")
@pytest.mark.scenario("002", "section 9")
async def test_every_turn_sees_the_status_until_it_was_told(world: World):
    id = await world.launch()
    await world.thread.wait(id)
    assert "pending acknowledgement" in await world.thread.reminder("llxprt")
    async with world.thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [id]
        await turn.ack()
    assert await world.thread.reminder("llxprt") == ""


@pytest.mark.behaviour("N5", "N6")
@pytest.mark.scenario("002", "section 10")
async def test_an_idle_thread_is_woken_and_a_busy_one_is_told_at_its_boundary(world: World):
    woken = asyncio.ensure_future(anext(aiter(world.thread.wakeups())))
    await world.thread.wait(await world.launch())
    await asyncio.wait_for(woken, LIMIT)
    async with world.thread.turn() as turn:
        await turn.ack()
        second = await world.launch()
        await world.thread.wait(second)
        assert [notice.task_id for notice in await turn.boundary()] == [second]
        await turn.ack()


@pytest.mark.behaviour("M1")
@pytest.mark.scenario("002", "section 11")
async def test_the_limit_is_five_unless_it_is_set(world: World):
    assert world.mt.limits().for_kind("agent") == 5


@pytest.mark.behaviour("M3", "M4", "R15")
@pytest.mark.scenario("002", "decision 1")
async def test_over_the_limit_a_launch_is_refused_and_says_how_many_run(world: World):
    world.agents.hold()
    await world.tools.command("/set task-max-async 2")
    for _ in range(2):
        await world.launch()
    said = await world.tools.call("task", {"subagent_name": "researcher", "goal_prompt": "x", "async": True})
    assert (said.code, said.text) == (
        "limit_reached",
        "Cannot launch async task: maximum concurrent async tasks (2) reached. Currently 2 tasks running. "
        "Wait for tasks to complete or use check_async_tasks to review.",
    )
    assert said.data["returnDisplay"] == "[ERROR] Max async tasks (2) reached - 2 running"
    assert said.data["message"] == "Max async tasks (2) reached"
    assert len(await world.mt.list("all")) == 2


@pytest.mark.behaviour("L13")
@pytest.mark.scenario("002", "decision 2")
async def test_a_timeout_ends_it_as_it_ends_any_task(world: World):
    world.agents.hold()
    given = {"subagent_name": "researcher", "goal_prompt": "x", "async": True, "timeout_seconds": 2}
    id = (await world.tools.call("task", given)).data["agentId"]
    await world.held()
    await world.clock.advance(3)
    (task,) = await world.thread.wait(id)
    assert llxprt_texts.word(task) == "failed"
    assert llxprt_texts.output(task)["terminate_reason"] == "TIMEOUT"


@pytest.mark.behaviour("N11")
@pytest.mark.scenario("002", "decision 3")
async def test_a_failure_is_told_like_a_completion(world: World):
    await world.thread.wait(await world.launch("broken"))
    async with world.thread.turn() as turn:
        assert "failed:" in turn.notices[0].message("llxprt").text


@pytest.mark.behaviour("L9", "R4")
@pytest.mark.scenario("002", "decision 4")
async def test_the_model_has_no_cancel_and_a_person_has(world: World):
    assert [tool.name for tool in await world.tools.tools()] == ["task", "check_async_tasks"]
    world.agents.hold()
    id = await world.launch()
    await world.held()
    assert (await world.tools.command(f"/task end {id}")).code == ""
    assert "Cancelled (pending acknowledgement)" in await world.thread.reminder("llxprt")


@pytest.mark.behaviour("R5")
@pytest.mark.scenario("002", "decision 5")
async def test_a_store_in_memory_forgets(world: World):
    await world.thread.wait(await world.launch())
    async with Meantime.open(":memory:", runners=[FakeSessionRunner()]) as other:
        assert await other.list("all") == []


@pytest.mark.behaviour("N16")
@pytest.mark.scenario("002", "decision 6")
async def test_what_an_async_agent_says_is_the_same_as_what_a_sync_one_says(world: World):
    id = await world.launch()
    await world.thread.wait(id)
    said = [(line.role, line.text) for line in await world.thread.lines(id)]
    answer = await world.thread.call(Agent("researcher", "find it"))
    assert said[-1] == ("assistant", answer.result)


@pytest.mark.behaviour("I14", "R16")
@pytest.mark.scenario("002", "decision 7")
async def test_twice_as_many_ended_ones_as_may_run_are_listed(world: World):
    await world.tools.command("/set task-max-async 1")
    ids = []
    for _ in range(4):
        ids.append(await world.launch())
        await world.thread.wait(ids[-1])
    listed = (await world.tools.call("check_async_tasks", {})).data["count"]
    assert listed == 2
    await world.tools.command("/set task-max-async -1")
    for _ in range(8):
        await world.thread.wait(await world.launch())
    assert (await world.tools.call("check_async_tasks", {})).data["count"] == 10


@pytest.mark.behaviour("F11", "R14")
@pytest.mark.scenario("002", "decision 8")
async def test_a_prefix_that_fits_several_lists_them(world: World):
    world.agents.hold()
    for id in ("t_aaaaaaaa11", "t_aaaaaaaa22"):
        await world.thread.start(Agent("researcher", "x"), id=id)
    said = await world.tools.call("check_async_tasks", {"task_id": "aaaa"})
    assert said.code == "ambiguous"
    assert said.text.splitlines()[0] == "Multiple tasks match 'aaaa'. Be more specific:"
    assert sorted(said.text.splitlines()[1:]) == [
        "- aaaaaaaa1: researcher (running)", "- aaaaaaaa2: researcher (running)",
    ]  # fmt: skip
    assert said.data["message"] == "Ambiguous task ID: aaaa"
    assert said.data["returnDisplay"].startswith("Ambiguous ID. Matches:\n- aaaaaaaa")
    typed = await world.tools.command("/task end aaaa")
    assert typed.text.splitlines()[1].startswith("  aaaaaaaa")
