"""Seed 004 in its own words: the psi dialect. What the kernel does for each row is in the other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime import Call, InlineLimits, Meantime, Settings, Shell
from meantime.testing import FakeClock
from meantime.toolset.toolset import Toolset

pytestmark = pytest.mark.anyio
SLOW = {"tool": "shell", "arguments": {"command": "sleep 600"}, "background": True}


@pytest.fixture
async def mt(clock: FakeClock):
    settings = Settings(inline=InlineLimits(200, 10), stop_grace=0.3)
    async with Meantime.open(":memory:", clock=clock, settings=settings) as opened:
        yield opened


@pytest.fixture
def jobs(mt: Meantime) -> Toolset:
    return mt.thread("conv-1").toolset("psi", commands=Shell)


async def started(jobs: Toolset, command: str) -> str:
    said = await jobs.call(
        "run_tool", {"tool": "shell", "arguments": {"command": command}, "background": True}
    )
    assert not said.code, said
    return said.data["job_id"]


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N1")
async def test_a_quick_tool_answers_synchronous_and_leaves_no_job(mt: Meantime, jobs: Toolset):
    said = await jobs.call("run_tool", {"tool": "shell", "arguments": {"command": "echo hi"}})
    assert (said.data["mode"], "job_id" in said.data) == ("synchronous", False)
    assert said.data["result"].strip() == "hi"
    assert await mt.list("all") == []


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N1")
async def test_a_tool_that_fails_inline_says_so_with_its_output(mt: Meantime, jobs: Toolset):
    said = await jobs.call("run_tool", {"tool": "shell", "arguments": {"command": "echo hi; exit 3"}})
    assert said.text.startswith("task_failed: It ended with exit code 3.\n")
    assert "\nhi\n" in said.text
    assert (said.code, said.data["mode"], "job_id" in said.data) == ("task_failed", "synchronous", False)
    assert await mt.list("all") == []


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N1")
async def test_what_a_function_raises_is_its_answer(mt: Meantime):
    async def lost() -> None:
        raise ValueError("no such file")

    jobs = mt.thread("conv-1").toolset("psi", tools={"lost": lost})
    said = await jobs.call("run_tool", {"tool": "lost"})
    assert (said.text, said.code) == ("tool_failed: ValueError: no such file", "tool_failed")


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N1")
async def test_where_nothing_may_be_handed_off_a_tool_is_waited_for(mt: Meantime):
    """F20: then there is no parameter for it, and no threshold."""
    alone = mt.thread("conv-1").toolset("psi", commands=Shell, background=False)
    run = (await alone.tools())[0]
    assert (run.name, run.starts, list(run.schema["properties"])) == (
        "run_tool",
        False,
        ["tool", "arguments"],
    )
    said = await alone.call("run_tool", {"tool": "shell", "arguments": {"command": "echo hi"}})
    assert said.data == {"mode": "synchronous", "result": "hi\n"}
    assert (await alone.call("run_tool", SLOW)).code == "invalid_input"


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N2")
async def test_a_background_start_answers_with_a_job_that_runs(mt: Meantime, jobs: Toolset):
    said = await jobs.call("run_tool", SLOW)
    assert (said.data["mode"], said.data["status"]) == ("background", "running")
    assert [task.id for task in await mt.list("all")] == [said.data["job_id"]]


@pytest.mark.behaviour("N1", "N2", "N3")
@pytest.mark.scenario("004", "N4", "N5")
async def test_endings_are_synthetic_messages_of_the_assistant_in_order(mt: Meantime, jobs: Toolset):
    thread = mt.thread("conv-1")
    ids: list[str] = []
    for word in ("one", "two"):
        ids.append(await started(jobs, f"echo {word}"))
        await thread.wait(ids[-1])
    async with thread.turn() as turn:
        told = [notice.message("psi") for notice in turn.notices]
        await turn.ack()
    assert [message.role for message in told] == ["assistant", "assistant"]
    assert [id in message.text for id, message in zip(ids, told, strict=True)] == [True, True]
    assert "is completed after" in told[0].text
    async with thread.turn() as turn:
        assert turn.notices == []


@pytest.mark.behaviour("L5", "L9", "R3")
@pytest.mark.scenario("004", "N6")
async def test_a_cancel_is_pending_for_user_and_agent(mt: Meantime, jobs: Toolset):
    by_agent, by_user = await started(jobs, "trap '' TERM; sleep 600"), await started(jobs, "sleep 600")
    said = await jobs.call("cancel_job", {"job_id": by_agent})
    assert (said.data["status"], said.data["cancel_requested_by"]) == ("pending_cancel", "agent")
    typed = await jobs.command(f"/cancel-job {by_user}")
    assert typed.data["cancel_requested_by"] == "user"


@pytest.mark.behaviour("N17", "R10")
@pytest.mark.scenario("004", "N7")
async def test_an_oversize_payload_is_a_reference_to_a_file(mt: Meantime, jobs: Toolset):
    id = await started(jobs, "seq 1000")
    await mt.thread("conv-1").wait(id)
    record = await jobs.call("inspect_job", {"job_id": id})
    path = record.data["payload_file"]
    assert Path(path).read_text().split()[-1] == "1000"
    async with mt.thread("conv-1").turn() as turn:
        assert path in turn.notices[0].message("psi").text


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("004", "N8", "N9")
async def test_jobs_are_listed_by_default_while_they_are_not_over_or_by_status(mt: Meantime, jobs: Toolset):
    runs, done = await started(jobs, "sleep 600"), await started(jobs, "true")
    await mt.thread("conv-1").wait(done)

    async def listed(**given: object) -> list[str]:
        return [job["job_id"] for job in (await jobs.call("list_jobs", given)).data["jobs"]]

    assert await listed() == [runs]
    assert await listed(statuses=["completed"]) == [done]
    assert set(await listed(statuses=["completed", "running"])) == {runs, done}
    assert (await jobs.call("list_jobs", {"statuses": ["odd"]})).code == "invalid_input"


@pytest.mark.behaviour("I10", "I9")
@pytest.mark.scenario("004", "N10", "E8", "E9")
async def test_a_job_belongs_to_its_own_thread(mt: Meantime, jobs: Toolset):
    id = await started(jobs, "sleep 600")
    assert (await jobs.call("inspect_job", {"job_id": id})).data["thread_id"] == "conv-1"
    elsewhere = mt.thread("other").toolset("psi", commands=Shell)
    for name in ("inspect_job", "cancel_job"):
        said = await elsewhere.call(name, {"job_id": id})
        assert (said.code, said.text) == ("not_found_in_thread", f"Job {id} not found in this thread.")
    assert (await elsewhere.call("list_jobs", {})).data == {"jobs": []}


@pytest.mark.behaviour("I10")
@pytest.mark.scenario("004", "N10")
async def test_a_failed_job_shows_its_error_exit_code_and_whether_it_was_told(mt: Meantime, jobs: Toolset):
    id = await started(jobs, "echo no such file; exit 3")
    await mt.thread("conv-1").wait(id)
    before = await jobs.call("inspect_job", {"job_id": id})
    shown = {key: before.data[key] for key in ("error", "exit_code", "terminal_message_emitted")}
    assert shown == {
        "error": "It ended with exit code 3.",
        "exit_code": 3,
        "terminal_message_emitted": False,
    }
    assert "Exit code: 3\nTerminal message emitted: no\n" in before.text
    async with mt.thread("conv-1").turn() as turn:
        held = await jobs.call("inspect_job", {"job_id": id})
        assert held.data["terminal_message_emitted"] is False  # it is held, and not yet acknowledged
        turn.render("psi")
        await turn.ack()
    after = await jobs.call("inspect_job", {"job_id": id})
    assert after.data["terminal_message_emitted"] is True


@pytest.mark.behaviour("I10")
@pytest.mark.scenario("004", "N10")
async def test_a_job_that_runs_or_completed_has_no_error(mt: Meantime, jobs: Toolset):
    going, done = await started(jobs, "sleep 600"), await started(jobs, "true")
    await mt.thread("conv-1").wait(done)
    for id in (going, done):
        data = (await jobs.call("inspect_job", {"job_id": id})).data
        assert (data["error"], data["exit_code"], data["terminal_message_emitted"]) == (None, None, False)


@pytest.mark.behaviour("I10")
@pytest.mark.scenario("004", "N10")
async def test_tool_name_is_the_name_by_which_the_tool_is_called(mt: Meantime, jobs: Toolset):
    async def build_index() -> str:
        return "done"

    named = mt.thread("conv-1").toolset("psi", tools={"index": build_index}, commands=Shell)
    told = await named.call("run_tool", {"tool": "index", "background": True})
    other = await mt.thread("conv-1").start(Call(build_index))
    command = await started(jobs, "true")
    for id, name in ((told.data["job_id"], "index"), (other.id, "build_index"), (command, "shell")):
        assert (await jobs.call("inspect_job", {"job_id": id})).data["tool_name"] == name


@pytest.mark.behaviour("L25")
@pytest.mark.scenario("004", "E11")
async def test_manual_retry_is_not_supported(jobs: Toolset):
    said = await jobs.command("/retry-job t_1")
    assert (said.code, said.text) == ("retry_not_supported", "Manual retry not supported.")


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("004", "B1")
async def test_a_result_or_a_job_never_both(monkeypatch):
    monkeypatch.setattr("meantime.dialects.psi.INLINE", 0.05)
    async with Meantime.open(":memory:", settings=Settings(on_close="stop")) as mt:
        jobs = mt.thread("conv-1").toolset("psi", commands=Shell)
        said = [
            await jobs.call("run_tool", {"tool": "shell", "arguments": {"command": command}})
            for command in ("sleep 600", "sleep 0.05", "true")
        ]
    for one in said:
        assert ("result" in one.data) != ("job_id" in one.data)
    assert said[0].data["mode"] == "background"
