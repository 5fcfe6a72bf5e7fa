"""Threads and assistants of Agent Protocol, who may see them, and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from meantime.surfaces.agent_protocol.thread_records import LONGEST, MOST_CHANGES
from meantime.surfaces.http.issued_tokens import Grant

from .conftest import Site, saying

pytestmark = pytest.mark.anyio


async def test_the_configured_agents_are_the_assistants(site: Site):
    (found,) = (await site.ask("POST", "/assistants/search", {})).json()
    assert (found["assistant_id"], found["graph_id"], found["description"]) == ("explore", "explore", "Looks")
    assert (await site.ask("GET", "/assistants/explore")).json() == found
    assert (await site.ask("POST", "/assistants/count", {"graph_id": "other"})).json() == 0
    assert (await site.ask("GET", "/assistants/explore/schemas")).json()["graph_id"] == "explore"
    assert len((await site.ask("GET", "/assistants/explore/graph")).json()["nodes"]) == 3
    missing = await site.ask("GET", "/assistants/nobody")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_agent")
    assert missing.json()["detail"] == "There is no agent 'nobody'. There are: explore."


@pytest.mark.breadth
async def test_a_thread_has_its_metadata_and_is_found_by_it(site: Site):
    thread = await site.thread(metadata={"subagent_name": "a", "deep": {"x": 1, "y": 2}})
    await site.joined(await site.run(thread, "look"))
    other = await site.thread()
    await site.joined(await site.run(other, "look"))
    wanted = {"metadata": {"deep": {"x": 1}}}
    assert [one["thread_id"] for one in (await site.ask("POST", "/threads/search", wanted)).json()] == [
        thread
    ]
    assert (await site.ask("POST", "/threads/count", {})).json() == 2
    patched = await site.ask("PATCH", f"/threads/{thread}", {"metadata": {"more": True}})
    assert patched.json()["metadata"] == {"subagent_name": "a", "deep": {"x": 1, "y": 2}, "more": True}
    state = (await site.ask("GET", f"/threads/{thread}/state")).json()
    assert (state["next"], len(state["values"]["messages"])) == ([], 2)
    assert (await site.ask("POST", f"/threads/{thread}/history", {})).json() == [state]


async def test_a_thread_that_exists_is_made_again_only_if_that_is_asked_for(site: Site):
    thread = await site.thread(thread_id="mine", metadata={"a": 1})
    twice = await site.ask("POST", "/threads", {"thread_id": thread})
    assert (twice.status_code, twice.json()["code"]) == (409, "thread_exists")
    again = await site.ask("POST", "/threads", {"thread_id": thread, "if_exists": "do_nothing"})
    assert (again.status_code, again.json()["metadata"]) == (200, {"a": 1})


@pytest.mark.breadth
async def test_a_deleted_thread_is_gone_with_its_runs(site: Site):
    thread = await site.thread(metadata={"a": 1})
    run = await site.run(thread, "slow")
    busy = await site.ask("DELETE", f"/threads/{thread}")
    assert (busy.status_code, busy.json()["code"]) == (409, "thread_busy")
    site.gate.set()
    await site.joined(run)
    assert (await site.ask("DELETE", f"/threads/{thread}")).status_code == 204
    assert (await site.ask("GET", f"/threads/{thread}")).status_code == 404
    assert (await site.ask("GET", f"/threads/{thread}/runs/{run['run_id']}")).status_code == 404
    assert await site.thread(thread_id=thread) == thread
    assert (await site.ask("GET", f"/threads/{thread}")).json()["metadata"] == {}


@pytest.mark.breadth
@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"assistant_id": "explore"}, "invalid_input", "either input or command"),
        ({}, "invalid_input", "assistant_id"),
        ({"assistant_id": 3}, "invalid_input", "assistant_id"),
        ({"assistant_id": "explore", "input": {"messages": []}}, "invalid_input", "no messages"),
        ({"assistant_id": "explore", "input": 3}, "invalid_input", "no messages"),
        ({"assistant_id": "explore", "input": {"messages": [3]}}, "invalid_input", "an object with role"),
        (saying("  "), "invalid_input", "last message must be the user's"),
        (
            {"assistant_id": "explore", "input": {"messages": [{"role": "ai", "content": "x"}]}},
            "invalid_input",
            "last message must be the user's",
        ),
        (
            {"assistant_id": "explore", "input": {"messages": [{"role": "wizard", "content": "x"}]}},
            "invalid_input",
            "'wizard' is not a role",
        ),
        (saying([{"type": "image_url", "image_url": "x"}]), "invalid_input", "'image_url' is not supported"),
        (saying("x", webhook="http://127.0.0.1:1"), "unsupported", "webhook"),
        (saying("x", after_seconds=5), "unsupported", "after_seconds"),
        (saying("x", interrupt_before=["agent"]), "unsupported", "interrupt_before"),
        (saying("x", multitask_strategy="later"), "invalid_input", "multitask_strategy"),
        ({"assistant_id": "explore", "command": {"goto": "x"}}, "not_waiting", "no interrupt"),
        ({"assistant_id": "explore", "input": {"messages": ["x"] * 10_001}}, "invalid_input", "10000"),
    ],
    ids=lambda value: value if isinstance(value, str) else "body",
)
async def test_a_bad_run_is_refused_in_the_shape_of_the_protocol(
    site: Site, body: dict[str, Any], code: str, words: str
):
    answer = await site.ask("POST", f"/threads/{await site.thread()}/runs", body)
    assert answer.status_code == (409 if code == "not_waiting" else 422), answer.text
    assert answer.json()["code"] == code
    assert words in answer.json()["detail"]


async def test_bad_bodies_paths_and_methods_are_refused_in_the_shape_of_the_protocol(site: Site):
    broken = await site.client.post(
        "/agent-protocol/threads", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert (broken.status_code, broken.json()["code"]) == (422, "invalid_json")
    assert (await site.ask("GET", "/crons")).json()["detail"].startswith("Agent Protocol has nothing here.")
    wrong = await site.ask("DELETE", "/threads")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (
        405,
        "wrong_method",
        "POST, OPTIONS",
    )
    assert (await site.ask("GET", "/threads/never-made")).status_code == 404
    assert (await site.ask("POST", "/threads/never-made/runs", saying("x"))).status_code == 404
    created = await site.ask("POST", "/threads/never-made/runs", saying("x", if_not_exists="create"))
    assert created.status_code == 200
    for id in ("t_x", "t_x.0", "t_x.1", f"{created.json()['run_id']}0", "x" * 200):
        assert (await site.ask("GET", f"/threads/never-made/runs/{id}")).status_code == 404, id
    mode = await site.ask("POST", "/runs/stream", saying("x", stream_mode="everything"))
    assert (mode.status_code, "'everything' is not a stream_mode" in mode.json()["detail"]) == (422, True)
    assert (await site.ask("POST", "/threads/search", {"limit": 1_001})).status_code == 422


@pytest.mark.breadth
async def test_names_metadata_and_its_changes_have_limits(site: Site):
    assert (await site.ask("POST", "/threads", {"thread_id": "x" * LONGEST})).status_code == 200
    assert (await site.ask("POST", "/threads", {"thread_id": "x" * (LONGEST + 1)})).status_code == 422
    assert (await site.ask("POST", "/threads", {"thread_id": "a/b"})).status_code == 422
    assert (await site.ask("POST", "/runs", saying("x" * 1_000_000))).status_code == 413
    big = await site.ask("POST", "/threads", {"metadata": {"x": "x" * 20_000}})
    assert (big.status_code, "at most 16384 are kept" in big.json()["detail"]) == (422, True)
    thread = await site.thread()
    for _ in range(MOST_CHANGES - 1):
        assert (await site.ask("PATCH", f"/threads/{thread}", {"metadata": {}})).status_code == 200
    full = await site.ask("PATCH", f"/threads/{thread}", {"metadata": {}})
    assert (full.status_code, full.json()["code"]) == (409, "too_many_changes")


async def test_the_token_of_a_thread_sees_no_other(site: Site):
    mine, theirs = await site.thread(thread_id="mine"), await site.thread(thread_id="theirs")
    run = await site.run(theirs, "look")
    await site.joined(run)
    token = {"x-api-key": site.door.thread_token(mine)}
    assert (await site.ask("GET", f"/threads/{mine}", headers=token)).status_code == 200
    assert (await site.ask("GET", f"/threads/{theirs}", headers=token)).status_code == 404
    for path in (f"/threads/{theirs}", f"/threads/{mine}"):
        assert (await site.ask("GET", f"{path}/runs/{run['run_id']}", headers=token)).status_code == 404
    assert (await site.ask("POST", "/threads", {}, headers=token)).status_code == 403
    assert (await site.ask("DELETE", f"/threads/{mine}", headers=token)).status_code == 403
    wanted = {"ids": [mine, theirs]}
    found = (await site.ask("POST", "/threads/search", wanted, headers=token)).json()
    assert [one["thread_id"] for one in found] == [mine]
    asked = saying("may I?")
    await site.ask("POST", f"/threads/{mine}/runs/wait", asked, headers=token)
    allow = {"assistant_id": "explore", "command": {"resume": "allow"}}
    given = await site.ask("POST", f"/threads/{mine}/runs", allow, headers=token)
    assert (given.status_code, given.json()["code"]) == (409, "needs_a_person")


async def test_writing_needs_a_token_that_may_write_and_reading_does_not(site: Site):
    thread = await site.thread()
    _, read = await site.door._tokens.issued.issue(Grant("read"), "reader")
    writes = [("POST", "/threads", {}), ("POST", f"/threads/{thread}/runs", saying("x"))]
    writes += [("PATCH", f"/threads/{thread}", {}), ("DELETE", f"/threads/{thread}", None)]
    reads = [("GET", f"/threads/{thread}", None), ("POST", "/threads/search", {})]
    for method, path, body in writes:
        for token, status in ((read, 403), ("wrong", 401)):
            answer = await site.ask(method, path, body, headers={"x-api-key": token})
            assert answer.status_code == status, (method, path)
    for method, path, body in reads:
        assert (await site.ask(method, path, body, headers={"x-api-key": read})).status_code == 200
    async with httpx.AsyncClient(base_url=site.door.url, trust_env=False, timeout=LIMIT) as nobody:
        assert (await nobody.post("/agent-protocol/threads", json={})).status_code == 401
        page = {"Origin": "http://elsewhere.example", "x-api-key": site.door.token}
        foreign = await nobody.post("/agent-protocol/threads/search", json={}, headers=page)
        assert (foreign.status_code, foreign.json()["code"]) == (403, "foreign_origin")
