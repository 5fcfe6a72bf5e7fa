"""Tokens with a scope: listed, revoked, expired, kept by their hashes, and bounded."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT, until_async

from jobs import Job
from meantime import Call, HttpDoor, InvalidInput, Meantime, Thread
from meantime.kernel.questions import Question
from meantime.surfaces.http import issued_tokens
from meantime.surfaces.http.issued_tokens import DAY, Grant, IssuedTokens
from meantime.surfaces.http.token_file import FILE, MOST_BYTES
from meantime.testing import FakeClock

from .asking import asking
from .conftest import OpenDoor
from .listening import Listener

pytestmark = pytest.mark.anyio


async def given(write: httpx.AsyncClient, **body: object) -> dict[str, Any]:
    answer = await write.post("/v1/tokens", json={"name": "somebody", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def is_watched(door: HttpDoor, id: str, *, count: int = 1) -> bool:
    return len(door._tokens.issued._open.get(id, ())) == count


async def is_waiting(http: httpx.AsyncClient, id: str) -> bool:
    return (await http.get(f"/v1/tasks/{id}")).json()["state"] == "waiting"


def shown(token: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {token['token']}"}


async def test_tokens_are_listed_without_their_text(write: httpx.AsyncClient, clock: FakeClock):
    first = await given(write, name="the wall screen", access="read")
    await clock.advance(1)
    await given(write, name="ci", access="write", thread="conv-1", days=1)
    listed = (await write.get("/v1/tokens")).json()["tokens"]
    assert [(one["name"], one["access"], one["thread"], one["state"]) for one in listed] == [
        ("ci", "write", "conv-1", "valid"),
        ("the wall screen", "read", None, "valid"),
    ]
    assert first["token"] not in json.dumps(listed)
    assert listed[1]["usedAt"] is None


@pytest.mark.behaviour("P12")
async def test_a_revoked_token_is_refused_at_once_and_says_so(
    write: httpx.AsyncClient, http: httpx.AsyncClient
):
    token = await given(write)
    assert (await http.get("/v1/tasks", headers=shown(token))).status_code == 200
    revoked = (await write.post(f"/v1/tokens/{token['id']}/revoke", json={})).json()
    assert (revoked["id"], revoked["state"]) == (token["id"], "revoked")
    answer = await http.get("/v1/tasks", headers=shown(token))
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")
    assert (await http.get(f"/~{token['token']}/v1/tasks")).json()["code"] == "token_revoked"
    assert (await write.post(f"/v1/tokens/{token['id']}/revoke", json={})).status_code == 200, "again"
    assert (await write.post("/v1/tokens/none/revoke", json={})).status_code == 404


@pytest.mark.breadth
@pytest.mark.behaviour("P12")
async def test_a_token_expires(write: httpx.AsyncClient, http: httpx.AsyncClient, clock: FakeClock):
    token = await given(write, days=1)
    await clock.advance(DAY - 1)
    assert (await http.get("/v1/access", headers=shown(token))).status_code == 200
    await clock.advance(1)
    answer = await http.get("/v1/access", headers=shown(token))
    assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")
    assert (await write.get("/v1/tokens")).json()["tokens"][0]["state"] == "expired"


@pytest.mark.breadth
@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("end", ["token_revoked", "token_expired"])
async def test_an_open_stream_ends_with_its_token_and_says_why(
    write: httpx.AsyncClient, door: HttpDoor, clock: FakeClock, end: str
):
    token, other = await given(write, days=1), await given(write, days=2)
    async with Listener(door, **shown(token)) as stream, Listener(door, **shown(other)) as unharmed:
        assert (await stream.hear()).event == (await unharmed.hear()).event == "snapshot"
        if end == "token_revoked":
            await write.post(f"/v1/tokens/{token['id']}/revoke", json={})
        else:
            await clock.advance(DAY)
        said = await stream.hear()
        while said.event == "heartbeat":
            said = await stream.hear()
        assert (said.event, said.data["code"]) == ("unauthorized", end)
        with pytest.raises(EOFError):
            await stream.hear()
        await given(write)
        assert not unharmed.reader.at_eof()
    await until_async(lambda: is_watched(door, token["id"], count=0), "nothing watches the token")
    await until_async(lambda: is_watched(door, other["id"], count=0), "nothing watches the other one")


@pytest.mark.behaviour("P12")
async def test_a_request_that_waits_is_refused_when_its_token_ends(
    write: httpx.AsyncClient, http: httpx.AsyncClient, door: HttpDoor, thread: Thread
):
    token, job = await given(write, access="write"), Job()
    await thread.start(job.call, id="slow")
    with_token = {"headers": shown(token), "timeout": LIMIT}
    waiting = [
        asyncio.create_task(http.get("/v1/tasks/slow/wait", **with_token)),
        asyncio.create_task(http.post("/v1/wait", json={"ids": ["slow"]}, **with_token)),
    ]
    await until_async(lambda: is_watched(door, token["id"], count=2), "both requests wait")
    await write.post(f"/v1/tokens/{token['id']}/revoke", json={})
    for answer in await asyncio.gather(*waiting):
        assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")
    job.finish()


@pytest.mark.behaviour("P12")
async def test_the_token_of_a_question_gives_a_permission_and_reaches_nothing_else(
    write: httpx.AsyncClient, http: httpx.AsyncClient, thread: Thread, mt: Meantime
):
    async def deploy() -> str:
        from meantime import current

        reply = await current().ask(Question(id="q", text="git push?", kind="permission"))
        return f"allowed: {reply.allows}"

    handle = await thread.start(Call(deploy), id="deploy")
    await thread.start(Call(int, "1"), id="mine")
    await until_async(lambda: is_waiting(http, "deploy"), "the task waits for an answer")
    token = await given(write, question="deploy", access="write")
    assert token["question"] == "deploy"
    answer = await http.post("/v1/tasks/mine/answer", json={"answer": "allow"}, headers=shown(token))
    assert answer.status_code == 404
    assert (await http.get("/v1/tasks", headers=shown(token))).json()["code"] == "question_token"
    assert (await http.post("/mcp", json={}, headers=shown(token))).json()["code"] == "question_token"
    answer = await http.post("/v1/tasks/deploy/answer", json={"answer": "allow"}, headers=shown(token))
    assert answer.status_code == 200, answer.text
    assert await handle.result() == "allowed: True"


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_read_only_token_speaks_no_mcp(
    write: httpx.AsyncClient, http: httpx.AsyncClient, method: str
):
    token = await given(write)
    answer = await http.request(method, "/mcp", headers={**shown(token), "Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (403, "read_only_token")


async def test_the_last_use_is_kept_coarsely_and_over_a_restart(
    open_door: OpenDoor, clock: FakeClock, tmp_path: Path
):
    async with await open_door() as door:
        issued = door._tokens.issued
        _, text = await issued.issue(Grant("read"), "somebody")
        bearer = {"Authorization": f"Bearer {text}"}
        await asking(door, "/v1/access", bearer)
        first = issued.listed()[0].used_at
        await clock.advance(30)
        await asking(door, "/v1/access", bearer)
        assert issued.listed()[0].used_at == first
        await clock.advance(31)
        await asking(door, "/v1/access", bearer)
        assert issued.listed()[0].used_at == first + 61
    again = await open_door()
    assert again._tokens.issued.listed()[0].used_at == first + 61
    assert (await asking(again, "/v1/access", bearer)).status == 200


@pytest.mark.behaviour("P12")
async def test_tokens_are_kept_by_their_hashes_in_a_private_file(clock: FakeClock, tmp_path: Path):
    path = tmp_path / FILE
    issued = IssuedTokens(clock, path)
    made, text = await issued.issue(Grant("read"), "somebody")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert text.rpartition("_")[2] not in path.read_text()
    assert made.digest in path.read_text()
    assert os.listdir(tmp_path) == [FILE], "no draft is left"
    holder = IssuedTokens(clock, path).holder(text)
    assert holder is not None
    assert holder.token.name == "somebody"
    assert issued.holder(text[:-1] + ("0" if text[-1] != "0" else "1")) is None
    assert issued.holder("mt_") is None
    await issued.revoke(made.id)
    assert IssuedTokens(clock, path).holder(text).ended == "token_revoked"


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
async def test_a_file_that_others_can_read_or_write_is_not_believed(
    clock: FakeClock, tmp_path: Path, mode: int
):
    await IssuedTokens(clock, tmp_path / FILE).issue(Grant(), "somebody")
    (tmp_path / FILE).chmod(mode)
    with pytest.raises(InvalidInput, match=r"is not private to you.*chmod 600"):
        IssuedTokens(clock, tmp_path / FILE)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(tmp_path / "other")
    with pytest.raises(InvalidInput, match="cannot be read"):
        IssuedTokens(clock, tmp_path / FILE)


@pytest.mark.behaviour("P11")
@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b'{"version": 2, "tokens": []}', b'{"version": 1}', b"\xff\xfe", b" " * (MOST_BYTES + 1)],
)
async def test_a_damaged_file_is_put_aside_and_reported(
    clock: FakeClock, tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / FILE
    _, text = await IssuedTokens(clock, path).issue(Grant(), "somebody")
    path.write_bytes(damage)
    issued = IssuedTokens(clock, path)
    assert issued.holder(text) is None
    assert "its tokens are refused" in caplog.text
    assert (tmp_path / f"{FILE}.damaged").read_bytes() == damage
    await issued.issue(Grant(), "another")
    assert [one.name for one in IssuedTokens(clock, path).listed()] == ["another"]


async def test_a_full_disk_refuses_a_token_and_revokes_all_the_same(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    issued = IssuedTokens(clock, tmp_path / FILE)
    made, text = await issued.issue(Grant(), "somebody")
    with monkeypatch.context() as disk:
        disk.setattr(issued_tokens, "write_tokens", full)
        with pytest.raises(Exception, match="could not be kept"):
            await issued.issue(Grant(), "another")
        with pytest.raises(Exception, match="would work again after a restart"):
            await issued.revoke(made.id)
    assert [one.name for one in issued.listed()] == ["somebody"]
    assert issued.holder(text).ended == "token_revoked"
    await issued.revoke(made.id)
    assert IssuedTokens(clock, tmp_path / FILE).holder(text).ended == "token_revoked"


async def test_named_tokens_have_a_limit_and_ended_ones_give_way(clock: FakeClock):
    issued = IssuedTokens(clock)
    made = [(await issued.issue(Grant(), f"number {n}"))[0] for n in range(issued_tokens.MOST)]
    with pytest.raises(Exception, match="100 tokens already") as refused:
        await issued.issue(Grant(), "one more")
    assert refused.value.code == "too_many_tokens"  # type: ignore[attr-defined]
    await issued.revoke(made[50].id)
    await issued.issue(Grant(), "one more")
    assert len(issued.listed()) == issued_tokens.MOST
    await clock.advance(15 * DAY)
    await issued.issue(Grant(), "later")
    assert [one.name for one in issued.listed()] == ["later"], "what ended a week ago is forgotten"


async def test_the_page_that_was_not_used_for_longest_gives_way(clock: FakeClock):
    issued = IssuedTokens(clock)
    first = [await issued.issue(Grant(), "page", page=True) for _ in range(issued_tokens.MOST)]
    await clock.advance(100)
    for _, text in [*first[:7], *first[8:]]:
        assert issued.holder(text) is not None
    with issued.watched(first[7][0]) as ended:
        _, newest = await issued.issue(Grant(), "page", page=True)
        assert ended.result() == "token_revoked"
    assert issued.holder(first[7][1]) is None
    assert issued.holder(newest) is not None
    assert len(issued.listed()) == issued_tokens.MOST


@pytest.mark.parametrize("name", ["", " ", "x" * 101])
async def test_a_name_has_a_length(clock: FakeClock, name: str):
    with pytest.raises(InvalidInput, match="1 to 100 characters"):
        await IssuedTokens(clock).issue(Grant(), name)


async def test_the_owner_sees_its_own_access(
    write: httpx.AsyncClient, http: httpx.AsyncClient, door: HttpDoor
):
    everything = {"id": None, "access": "write", "thread": None, "question": None, "expiresAt": None}
    assert (await write.get("/v1/access")).json() == everything
    assert (await http.get("/v1/access")).json() == {**everything, "access": "read"}
    bound = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    assert (await http.get("/v1/access", headers=bound)).json() == {**everything, "thread": "conv-1"}
