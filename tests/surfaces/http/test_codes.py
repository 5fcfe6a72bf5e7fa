"""A link opens the page once: its code is exchanged for a token, by the one who comes first."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from meantime import HttpDoor, InvalidInput
from meantime.surfaces.http import client_limits, issued_tokens, one_time_codes, token_file
from meantime.testing import FakeClock

from .conftest import OpenDoor, over_socket, over_tcp

pytestmark = pytest.mark.anyio
Show = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def page(door: HttpDoor) -> AsyncIterator[httpx.AsyncClient]:
    """A browser, as far as a server can tell."""
    async with over_tcp(door.url, headers={"Origin": door.url}) as client:
        yield client


@pytest.fixture
def show(page: httpx.AsyncClient) -> Show:
    async def shown(code: str, **more: Any) -> httpx.Response:
        return await page.post("/v1/codes/exchange", json={"code": code}, **more)

    return shown


async def code_of(write: httpx.AsyncClient, **body: object) -> str:
    answer = await write.post("/v1/codes", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["code"]


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.mark.breadth
@pytest.mark.behaviour("P12")
async def test_a_code_becomes_a_token_with_its_scope(write: httpx.AsyncClient, show: Show, door: HttpDoor):
    made = (await write.post("/v1/codes", json={"access": "read", "thread": "conv-1"})).json()
    assert made["url"] == f"{door.url}/#code={made['code']}"
    assert len(made["code"]) * 6 >= 128  # bits: a letter has six of them
    found = (await show(made["code"])).json()
    assert (found["access"], found["thread"], found["question"]) == ("read", "conv-1", None)
    headers = {"Authorization": f"Bearer {found['token']}"}
    async with over_tcp(door.url, headers=headers) as client:
        told = (await client.get("/v1/access")).json()
    assert told == {name: value for name, value in found.items() if name != "token"}


@pytest.mark.behaviour("P12")
async def test_a_code_works_once(write: httpx.AsyncClient, show: Show):
    code = await code_of(write)
    assert (await show(code)).status_code == 200
    again = await show(code)
    assert refusal(again) == (410, "code_used")
    assert "meantime open" in again.json()["hint"]


@pytest.mark.breadth
@pytest.mark.behaviour("P12")
async def test_of_many_that_show_a_code_at_once_one_gets_a_token(write: httpx.AsyncClient, show: Show):
    code = await code_of(write)
    answers = await asyncio.gather(*(show(code) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 7
    assert len((await write.get("/v1/tokens")).json()["tokens"]) == 1


@pytest.mark.behaviour("P12")
async def test_a_code_expires(write: httpx.AsyncClient, show: Show, clock: FakeClock):
    quick, slow = await code_of(write), await code_of(write, minutes=3)
    await clock.advance(120)
    assert refusal(await show(quick)) == (410, "code_expired")
    assert (await show(slow)).status_code == 200
    assert refusal(await show("nobody's")) == (404, "unknown_code")


async def test_a_code_whose_token_could_not_be_kept_can_be_used_again(
    write: httpx.AsyncClient, show: Show, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    code = await code_of(write)
    with monkeypatch.context() as disk:
        disk.setattr(issued_tokens, "write_tokens", full)
        answer = await show(code)
        assert answer.status_code == 507
        assert "No space left" in answer.json()["error"]
    assert (await show(code)).status_code == 200


@pytest.mark.behaviour("P12")
async def test_wrong_codes_are_bounded_and_others_cannot_lock_this_user_out(
    write: httpx.AsyncClient,
    show: Show,
    clock: FakeClock,
    open_door: OpenDoor,
    monkeypatch: pytest.MonkeyPatch,
):
    code = await code_of(write)
    for _ in range(one_time_codes.TRIES):
        assert refusal(await show("x" * 32)) == (404, "unknown_code")
    assert refusal(await show(code)) == (429, "too_many_tries")
    await clock.advance(61)
    assert (await show(code)).status_code == 200

    codes = one_time_codes.OneTimeCodes(clock)
    good, _ = codes.make(issued_tokens.Grant())
    for _ in range(one_time_codes.TRIES + 1):
        with pytest.raises(one_time_codes.CodeRefused), codes.taken("x", own=False):
            pass
    with codes.taken(good, own=True) as grant:
        assert grant == issued_tokens.Grant()


@pytest.mark.behaviour("P12")
async def test_a_code_for_the_same_user_is_of_no_use_to_others(
    write: httpx.AsyncClient, show: Show, door: HttpDoor, monkeypatch: pytest.MonkeyPatch
):
    """`meantime open` hands the link to a browser as an argument, and every user can read arguments."""
    code = await code_of(write, sameUser=True)
    with monkeypatch.context() as other:
        other.setattr(client_limits, "peer_uid", lambda transport: os.geteuid() + 1)
        async with over_tcp(door.url) as thief:
            answer = await thief.post("/v1/codes/exchange", json={"code": code})
        assert refusal(answer) == (403, "other_user")
    assert (await show(code)).status_code == 200, "and it was not used up"


@pytest.mark.behaviour("P12")
async def test_a_foreign_page_a_form_and_a_rebinding_host_exchange_nothing(
    write: httpx.AsyncClient, show: Show, page: httpx.AsyncClient
):
    code = await code_of(write)
    assert refusal(await show(code, headers={"Origin": "http://evil.example"})) == (403, "foreign_origin")
    assert refusal(await show(code, headers={"Origin": "null"})) == (403, "foreign_origin")
    assert refusal(await show(code, headers={"Host": "evil.example"})) == (421, "wrong_host")
    form = await page.post("/v1/codes/exchange", data={"code": code})
    assert refusal(form) == (415, "not_json")
    assert (await page.get("/v1/codes/exchange", params={"code": code})).status_code == 405
    assert (await show(code)).status_code == 200, "none of them used it up"


async def test_unused_codes_are_bounded(write: httpx.AsyncClient, show: Show, clock: FakeClock):
    codes = [await code_of(write) for _ in range(one_time_codes.MOST)]
    assert refusal(await write.post("/v1/codes", json={})) == (409, "too_many_codes")
    assert (await show(codes[0])).status_code == 200
    await code_of(write)
    await clock.advance(121)
    await code_of(write)


async def test_codes_that_are_over_are_remembered_up_to_a_limit(clock: FakeClock):
    codes = one_time_codes.OneTimeCodes(clock)
    kept, _ = codes.make(issued_tokens.Grant(), minutes=one_time_codes.MOST_MINUTES)
    for _ in range(2 * one_time_codes.REMEMBERED):
        code, _ = codes.make(issued_tokens.Grant())
        with codes.taken(code, own=True):
            pass
    assert len(codes._codes) <= one_time_codes.REMEMBERED + one_time_codes.MOST
    with codes.taken(kept, own=True):
        pass


@pytest.mark.parametrize(
    ("body", "named"),
    [({"minutes": 0}, "minutes"), ({"minutes": 1_441}, "minutes"), ({"days": 0}, "days"),
     ({"days": 366}, "days"), ({"access": "all"}, "access"), ({"thread": "../x"}, "thread"),
     ({"thread": "a", "question": "b"}, "exclude"), ({"question": "b", "access": "read"}, "read-only")],
)  # fmt: skip
async def test_a_code_that_cannot_be_made_names_what_is_wrong(
    write: httpx.AsyncClient, body: dict[str, object], named: str
):
    answer = await write.post("/v1/codes", json=body)
    assert answer.status_code == 400
    assert named in answer.json()["error"]


async def test_without_tcp_there_is_no_link_and_the_error_says_what_to_do(open_door: OpenDoor, places: Path):
    door = await open_door(tcp=False, socket=places / "http.sock")
    async with over_socket(places / "http.sock") as client:
        answer = await client.post("/v1/codes", json={})
    assert refusal(answer) == (409, "no_address")
    assert "http.enabled" in answer.json()["hint"]
    with pytest.raises(InvalidInput, match="no address for browsers"):
        door.page_url()


async def test_a_program_that_serves_makes_links_itself(door: HttpDoor, show: Show):
    code = door.page_url(read_only=True, thread="conv-1", minutes=5).removeprefix(f"{door.url}/#code=")
    found = (await show(code)).json()
    assert (found["access"], found["thread"]) == ("read", "conv-1")
    with pytest.raises(InvalidInput, match="minutes="):
        door.page_url(minutes=0)


@pytest.mark.behaviour("P12")
async def test_neither_codes_nor_tokens_are_logged_or_kept(
    write: httpx.AsyncClient, show: Show, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "meantime")
    code = await code_of(write)
    token = (await show(code)).json()["token"]
    await show(code)
    kept = (tmp_path / "http" / token_file.FILE).read_text()
    for secret in (code, token, token.rpartition("_")[2]):
        assert secret not in kept
        assert secret not in "".join(
            record.getMessage() for record in caplog.records if "meantime" in record.name
        )
