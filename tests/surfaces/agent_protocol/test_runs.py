"""Runs of Agent Protocol: each message of a thread is a run of one task, in one session."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from .conftest import Site, saying

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


def texts(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["type"], message["content"]) for message in values["messages"]]


async def test_each_message_of_a_thread_is_a_run_of_one_task(site: Site):
    thread = await site.thread()
    first = await site.run(thread, "look")
    assert texts(await site.joined(first)) == [("human", "look"), ("ai", "done: look")]
    second = await site.run(thread, "again")
    assert texts(await site.joined(second))[2:] == [("human", "again"), ("ai", "done: again")]
    assert texts(await site.joined(first)) == [("human", "look"), ("ai", "done: look")]
    listed = (await site.ask("GET", f"/threads/{thread}/runs")).json()
    assert [run["run_id"] for run in listed] == [second["run_id"], first["run_id"]]
    assert {run["status"] for run in listed} == {"success"}
    assert len(await site.mt.thread(thread).list("all")) == 1
    assert len(site.host.sessions) == 1


async def test_nobody_of_meantimes_own_is_told_what_the_client_asks_for_itself(site: Site):
    run = await site.run(await site.thread(), "look")
    await site.joined(run)
    assert (await site.client.get(f"/v1/notices?thread={run['thread_id']}")).json()["total"] == 0


async def test_messages_before_the_last_are_the_conversation_that_the_agent_goes_on_from(site: Site):
    history = [
        {"role": "user", "content": [{"type": "text", "text": "We build a house."}]},
        {"type": "ai", "content": "", "tool_calls": [{"name": "plan", "args": {"rooms": 3}, "id": "1"}]},
        {"type": "tool", "content": "three rooms", "name": "plan", "tool_call_id": "1"},
        {"role": "user", "content": "paint it"},
    ]
    body = {"assistant_id": "explore", "input": {"messages": history}}
    values = (await site.ask("POST", "/runs/wait", body)).json()
    assert values["messages"][-1]["content"] == "done: paint it"
    (prompt,) = site.host.prompts
    assert all(text in prompt.text for text in ("We build a house.", "→ plan", "three rooms"))


async def test_a_run_that_fails_has_its_error_in_its_values(site: Site):
    thread = await site.thread()
    values = (await site.ask("POST", f"/threads/{thread}/runs/wait", saying("fail"))).json()
    assert values["__error__"]["error"] == "ValueError"
    assert "it broke" in values["__error__"]["message"]
    (run,) = (await site.ask("GET", f"/threads/{thread}/runs")).json()
    assert (run["status"], "it broke" in run["error"]) == ("error", True)
    found = (await site.ask("GET", f"/threads/{thread}")).json()
    assert found["status"] == "error"


async def test_a_question_is_an_interrupt_and_resume_answers_it(site: Site):
    thread = await site.thread()
    values = (await site.ask("POST", f"/threads/{thread}/runs/wait", saying("may I?"))).json()
    (interrupt,) = values["__interrupt__"]
    assert (interrupt["id"], interrupt["value"]["question"]) == ("q-1", "May I run it?")
    found = (await site.ask("GET", f"/threads/{thread}")).json()
    assert (found["status"], list(found["interrupts"].values())) == ("interrupted", [[interrupt]])
    (run,) = (await site.ask("GET", f"/threads/{thread}/runs")).json()
    assert run["status"] == "success"  # as LangGraph has it: only the thread is interrupted
    answer = {"assistant_id": "explore", "command": {"resume": {"q-1": "allow"}}}
    values = (await site.ask("POST", f"/threads/{thread}/runs/wait", answer)).json()
    assert texts(values)[-1] == ("ai", "allowed: True, by user")
    late = await site.ask("POST", f"/threads/{thread}/runs", answer)
    assert (late.status_code, late.json()["code"]) == (409, "not_waiting")


@pytest.mark.parametrize(
    ("resume", "allowed"),
    [
        (True, True),
        (False, False),
        ({"decisions": [{"type": "approve"}]}, True),
        ({"decisions": [{"type": "reject", "message": "not here"}]}, False),
    ],
    ids=["true", "false", "approve", "reject"],
)
async def test_a_decision_of_human_in_the_loop_answers_a_permission(site: Site, resume: Any, allowed: bool):
    thread = await site.thread()
    await site.ask("POST", f"/threads/{thread}/runs/wait", saying("may I?"))
    answer = {"assistant_id": "explore", "command": {"resume": resume}}
    values = (await site.ask("POST", f"/threads/{thread}/runs/wait", answer)).json()
    assert values["messages"][-1]["content"] == f"allowed: {allowed}, by user"


async def test_a_message_that_follows_a_question_drops_it(site: Site):
    thread = await site.thread()
    await site.ask("POST", f"/threads/{thread}/runs/wait", saying("may I?"))
    values = (await site.ask("POST", f"/threads/{thread}/runs/wait", saying("never mind"))).json()
    assert values["messages"][-1]["content"] == "done: never mind"
    runs = (await site.ask("GET", f"/threads/{thread}/runs")).json()
    assert [run["status"] for run in runs] == ["success", "interrupted"]


async def test_a_busy_thread_queues_interrupts_or_rejects(site: Site):
    thread = await site.thread()
    first = await site.run(thread, "slow")
    await asyncio.wait_for(site.begun.wait(), LIMIT)
    busy = await site.ask("POST", f"/threads/{thread}/runs", saying("x", multitask_strategy="reject"))
    assert (busy.status_code, busy.json()["code"]) == (409, "thread_busy")
    queued = await site.run(thread, "queued")
    assert (queued["status"], await site.status(queued)) == ("pending", "pending")
    full = await site.ask("POST", f"/threads/{thread}/runs", saying("third"))
    assert (full.status_code, full.json()["code"]) == (409, "follow_up_queued")
    site.gate.set()
    assert texts(await site.joined(queued))[-1] == ("ai", "done: queued")
    assert await site.status(first) == "success"


async def test_a_message_that_interrupts_ends_the_run_before_it(site: Site):
    thread = await site.thread()
    first = await site.run(thread, "slow")
    await asyncio.wait_for(site.begun.wait(), LIMIT)
    second = await site.run(thread, "instead", multitask_strategy="interrupt")
    assert texts(await site.joined(second))[-1] == ("ai", "done: instead")
    assert (await site.status(first), await site.status(second)) == ("interrupted", "success")


async def test_a_cancelled_run_is_interrupted_and_so_is_what_was_queued_behind_it(site: Site):
    thread = await site.thread()
    first = await site.run(thread, "slow")
    await asyncio.wait_for(site.begun.wait(), LIMIT)
    queued = await site.run(thread, "queued")
    path = f"/threads/{thread}/runs/{queued['run_id']}/cancel"
    assert (await site.ask("POST", f"{path}?wait=1")).status_code == 200
    assert (await site.status(first), await site.status(queued)) == ("interrupted", "interrupted")
    assert (await site.ask("POST", path)).status_code == 202


async def test_two_first_messages_at_once_are_one_conversation(site: Site):
    thread = await site.thread()
    runs = await asyncio.gather(site.run(thread, "slow"), site.run(thread, "other"))
    site.gate.set()
    await asyncio.gather(*(site.joined(run) for run in runs))
    assert len(await site.mt.thread(thread).list("all")) == 1


async def events(answer: httpx.Response) -> list[tuple[str, Any, str]]:
    found: list[tuple[str, Any, str]] = []
    block: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line.startswith(":"):
            continue
        if line:
            block[name] = value
        elif block:
            found.append((block["event"], json.loads(block["data"]), block.get("id", "")))
            block = {}
    return found


async def test_a_stream_tells_each_message_once_and_goes_on_where_it_was_cut(site: Site):
    thread = await site.thread()
    body = saying("call it", stream_mode=["updates", "messages-tuple"])
    path = f"/agent-protocol/threads/{thread}/runs/stream"
    async with site.client.stream("POST", path, json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        location = answer.headers["location"]
        found = await events(answer)
    assert [name for name, _, _ in found] == ["metadata", *["updates", "messages"] * 4, "end"]
    updates = [one for one in found if one[0] == "updates"]
    messages = [data["agent"]["messages"][0] for _, data, _ in updates]
    assert [message["type"] for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[1]["tool_calls"][0]["args"] == {"for": "x"}
    for seen in range(4):  # cut behind each of them
        headers = {"Last-Event-ID": updates[seen][2]}
        async with site.client.stream("GET", f"/agent-protocol{location}", headers=headers) as answer:
            rest = await events(answer)
        assert [data for name, data, _ in rest if name == "updates"] == [
            data for _, data, _ in updates[seen + 1 :]
        ]
        assert rest[-1][0] == "end"


async def test_a_client_that_leaves_can_take_its_run_with_it(site: Site):
    thread = await site.thread()
    body = saying("slow", on_disconnect="cancel")
    async with site.client.stream("POST", f"/agent-protocol/threads/{thread}/runs/stream", json=body):
        await asyncio.wait_for(site.begun.wait(), LIMIT)
    (task,) = await site.mt.thread(thread).list("all")
    assert (await site.mt.thread(thread).wait(task.id, timeout=LIMIT))[0].status == "cancelled"


async def test_a_server_that_closes_breaks_its_streams_off_instead_of_ending_them(site: Site):
    """A clean end would say that the run is over."""
    thread = await site.thread()
    path = f"/agent-protocol/threads/{thread}/runs/stream"
    async with site.client.stream("POST", path, json=saying("slow")) as answer:
        await asyncio.wait_for(site.begun.wait(), LIMIT)
        closing = asyncio.ensure_future(site.door.close())
        with pytest.raises(httpx.HTTPError):
            await events(answer)
    await closing


async def test_a_wait_begins_with_white_space_which_json_allows(site: Site):
    """So a client sees at once that somebody answers."""
    thread = await site.thread()
    waiting = asyncio.ensure_future(site.ask("POST", f"/threads/{thread}/runs/wait", saying("slow")))
    await asyncio.wait_for(site.begun.wait(), LIMIT)
    site.gate.set()
    answer = await waiting
    assert answer.content.startswith(b"\n")
    assert texts(answer.json())[-1] == ("ai", "done: slow")
