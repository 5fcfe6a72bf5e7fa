"""A body is bounded while it comes, it is JSON, and it holds what is known: else a 4xx that says why."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import HttpDoor
from meantime.kernel.errors import InvalidInput
from meantime.surfaces.http.request_body import DEPTH, parsed
from meantime.surfaces.http.task_requests import StartBody
from meantime.testing import FakeClock

from .conftest import OpenDoor

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "code", "names"),
    [
        (b"", "invalid_input", "command, tool, agent and watch"),
        (b"{", "invalid_json", "JSON"),
        (b"nonsense", "invalid_json", "JSON"),
        (b'{"command": "\xff"}', "invalid_json", "JSON"),
        (b'{"command": "\\ud800"}', "invalid_json", "JSON"),
        (b'{"timeout": NaN}', "invalid_json", "JSON"),
        (b"[]", "invalid_input", "object"),
        (b'"x"', "invalid_input", "object"),
        (b'{"comand": "ls"}', "invalid_input", "comand"),
        (b'{"command": 1}', "invalid_input", "$.command"),
        (b'{"command": ["ls", 1]}', "invalid_input", "$.command[1]"),
        (b'{"command": "ls", "env": {"A": 1}}', "invalid_input", "$.env"),
        (b'{"command": "ls", "timeout": "5"}', "invalid_input", "$.timeout"),
        (b'{"command": "ls", "timeout": 0}', "invalid_input", "timeout"),
        (b'{"command": "ls", "openStdin": "yes"}', "invalid_input", "$.openStdin"),
        (b'{"command": "ls", "open_stdin": true}', "invalid_input", "open_stdin"),
        (b'{"command": "ls", "tool": "x"}', "invalid_input", "command and tool"),
        (b'{"command": "ls", "prompt": "x"}', "invalid_input", "prompt belongs to agent"),
        (b'{"tool": "x", "openStdin": true}', "invalid_input", "openStdin belongs to command"),
        (b'{"agent": "x"}', "invalid_input", "prompt"),
        (b'{"command": ""}', "invalid_input", "no command"),
        (b'{"command": "a\\u0000b"}', "invalid_input", "NUL"),
        (b'{"command": "ls", "id": "../../etc"}', "invalid_input", "id"),
        (b'{"command": "ls", "thread": "a b"}', "invalid_input", "thread"),
        (b'{"command": "ls", "retry": "always"}', "invalid_input", "retry"),
        (b'{"command": "ls", "onLimit": "explode"}', "invalid_input", "on_limit"),
        (b'{"command": "ls", "meta": []}', "invalid_input", "$.meta"),
        (b'{"command": "ls", "notify": null}', "invalid_input", "$.notify"),
    ],
)
async def test_a_wrong_body_says_what_is_wrong(write: httpx.AsyncClient, body: bytes, code: str, names: str):
    answer = await write.post("/v1/tasks", content=body, headers=JSON)
    found = answer.json()
    assert (answer.status_code, found["code"]) == (400, code)
    assert names in found["error"], found["error"]
    assert (await write.get("/v1/tasks")).json()["total"] == 0


def nested(depth: int) -> dict[str, Any]:
    found: Any = 1
    for _ in range(depth - 2):  # the body and `arguments` are two
        found = [found]
    return {"tool": "x", "arguments": {"a": found}}


@pytest.mark.behaviour("P10")
def test_a_body_has_at_most_64_levels():
    assert parsed(json.dumps(nested(DEPTH)).encode(), StartBody).tool == "x"
    with pytest.raises(InvalidInput) as problem:
        parsed(json.dumps(nested(DEPTH + 1)).encode(), StartBody)
    assert problem.value.code == "too_deep"


@pytest.mark.behaviour("P10")
@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_any_depth_is_answered(write: httpx.AsyncClient, opening: bytes):
    answer = await write.post(
        "/v1/tasks", content=b'{"tool":"x","arguments":' + opening * 100_000, headers=JSON
    )
    assert (answer.status_code, answer.json()["code"] in ("too_deep", "invalid_json")) == (400, True)


@pytest.mark.behaviour("H13")
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
async def test_a_form_cannot_write(write: httpx.AsyncClient, kind: str):
    headers = {"Content-Type": kind} if kind else {}
    answer = await write.post("/v1/tasks", content=b'{"command":"ls"}', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "not_json")


async def test_a_content_type_may_say_more(write: httpx.AsyncClient):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await write.post("/v1/cancel", content=b'{"thread":"a"}', headers=headers)).status_code == 200


@pytest.mark.behaviour("P10")
async def test_a_body_that_says_its_size_is_refused_before_it_comes(write: httpx.AsyncClient):
    answer = await write.post("/v1/tasks", content=b" " * 1_000_001, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_big")


@pytest.mark.behaviour("P10")
async def test_a_client_that_sends_all_of_a_body_before_it_reads_is_told_why(door: HttpDoor):
    def ask() -> tuple[int, str]:
        plain = http.client.HTTPConnection("127.0.0.1", door.port)
        plain.request("POST", "/v1/tasks", b" " * 8_000_000, JSON)
        answer = plain.getresponse()
        return answer.status, json.load(answer)["code"]

    assert await asyncio.to_thread(ask) == (413, "body_too_big")


@pytest.mark.behaviour("P10")
async def test_a_body_in_pieces_is_counted_as_it_comes(write: httpx.AsyncClient):
    async def pieces():
        for _ in range(25):
            yield b" " * 50_000

    answer = await write.post("/v1/tasks", content=pieces(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_big")

    async def allowed():
        yield b'{"command": ["true"], "descr'
        yield b'iption": "in pieces"}'

    answer = await write.post("/v1/tasks", content=allowed(), headers=JSON)
    assert (answer.status_code, answer.json()["description"]) == (201, "in pieces")


@pytest.mark.behaviour("P10")
async def test_a_body_that_never_ends_is_let_go(open_door: OpenDoor, clock: FakeClock):
    door = await open_door(body_seconds=77.0)
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(
        f"POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {door.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    await clock.advance_to_alarm(77.0)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
        await asyncio.wait_for(reader.readexactly(1), LIMIT)
    writer.close()


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error(
    door: HttpDoor, caplog: pytest.LogCaptureFixture, write: httpx.AsyncClient
):
    _, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(
        f"POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\nAuthorization: Bearer {door.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
    )
    await writer.drain()
    writer.transport.abort()
    assert (await write.get("/v1/tasks")).json()["total"] == 0
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("spelling", ["toolCallID", "toolCallId"])
async def test_a_tool_call_is_taken_in_both_spellings(write: httpx.AsyncClient, spelling: str):
    body = {"command": "true", spelling: "call-1"}
    first = await write.post("/v1/tasks", json=body)
    assert (first.status_code, first.json()["toolCallID"]) == (201, "call-1")
    assert "toolCallId" not in first.json()
    second = await write.post("/v1/tasks", json={"command": "true", "toolCallID": "call-1"})
    assert (second.status_code, second.json()["existing"]) == (409, first.json()["id"])


async def test_two_spellings_that_differ_are_refused(write: httpx.AsyncClient):
    both = {"command": "true", "toolCallID": "a", "toolCallId": "b"}
    answer = await write.post("/v1/tasks", json=both)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "toolCallID and toolCallId" in answer.json()["error"]
    assert (await write.get("/v1/tasks")).json()["total"] == 0


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/v1/wait", {"timeout": 601}, "timeout: a wait takes from 0 to 600 seconds."),
        ("/v1/wait", {"timeout": -1}, "timeout: a wait takes from 0 to 600 seconds."),
        (
            "/v1/wait",
            {"ids": ["x"] * 1_001},
            "ids: name at most 1000 tasks, and no batch with them.",
        ),
        ("/v1/threads/a/turns", {"lease": 0}, "lease: a turn is leased for up to 3600 seconds."),
        ("/v1/threads/a/turns", {"limit": 101}, "limit: from 1 to 100 notices at once."),
        ("/v1/turns/t/ack", {"reads": ["x"] * 1_001}, "notices: at most 1000 at once."),
        (
            "/v1/threads/a/tell",
            {"moment": "stop", "host": "x" * 4_097},
            "session, transcript, host: at most 4096 characters.",
        ),
        (
            "/v1/threads/a/turns",
            {"lease": "60"},
            "The body is not right: Expected `float`, got `str` - at `$.lease`.",
        ),
        (
            "/v1/wait",
            {"until": "some"},
            "The body is not right: Invalid enum value 'some' - at `$.until`.",
        ),
    ],
)
async def test_a_constraint_has_the_error_that_its_field_declares(
    write: httpx.AsyncClient, path: str, body: dict[str, Any], error: str
):
    answer = await write.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
