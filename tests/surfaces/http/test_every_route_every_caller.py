"""Every route for every kind of caller, as one table. PROMISES.md, 'The HTTP door'.

What stands in the table is the status of the answer. A write that passes the gate is sent an empty body,
and answers what that deserves: so nothing here depends on what another row has done.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from meantime import HttpDoor, Meantime
from meantime.surfaces.http import client_limits
from meantime.surfaces.http.issued_tokens import Grant

from .conftest import OpenDoor, over_socket, over_tcp

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]

ROUTES = """
GET  /v1/tasks                    GET  /v1/tasks/mine               GET  /v1/tasks/theirs
GET  /v1/tasks/mine/logs          GET  /v1/tasks/theirs/logs        GET  /v1/tasks/mine/result
GET  /v1/tasks/theirs/result      GET  /v1/tasks/mine/runs          GET  /v1/tasks/theirs/runs
GET  /v1/tasks/mine/output        GET  /v1/tasks/theirs/output      GET  /v1/tasks/mine/wait
GET  /v1/tasks/theirs/wait        GET  /v1/task-groups/b-1          GET  /v1/task-groups/b-2
GET  /v1/batches/b-1              GET  /v1/batches/b-2              GET  /v1/threads
GET  /v1/threads/conv-1           GET  /v1/threads/other            GET  /v1/threads/conv-1/wake
GET  /v1/threads/other/wake       GET  /v1/notices                  GET  /v1/notices?thread=other
GET  /v1/calls                    GET  /v1/calls?thread=other       GET  /v1/events
GET  /v1/overview                 GET  /v1/complete                GET  /v1/complete?q=thread:
GET  /v1/tasks?format=rows        GET  /v1/tasks?q=stats:failed     GET  /v1/events?format=patches
GET  /v1/events?thread=other      GET  /v1/stats                    GET  /v1/info
GET  /v1/openapi.json             GET  /v1/health                   GET  /v1/unknown
GET  /v1/servers/none/tools       GET  /v1/stats?nonsense=1         GET  /v1/tasks?statsu=running
GET  /v1/toolset                  GET  /v1/toolset?dialect=llxprt   GET  /v1/toolset?dialect=nobodys
POST /v1/tasks                    POST /v1/wait                     POST /v1/cancel
POST /v1/clear                    POST /v1/purge                    POST /v1/limits
POST /v1/tasks/mine/cancel        POST /v1/tasks/theirs/cancel      POST /v1/tasks/mine/resume
POST /v1/tasks/theirs/resume      POST /v1/tasks/mine/send          POST /v1/tasks/theirs/send
POST /v1/tasks/mine/answer        POST /v1/tasks/theirs/answer      POST /v1/tasks/mine/promote
POST /v1/tasks/theirs/promote     POST /v1/threads/conv-1/turns     POST /v1/threads/other/turns
POST /v1/threads/conv-1/unpark    POST /v1/threads/other/unpark     POST /v1/turns/{theirs}/boundary
POST /v1/turns/{theirs}/renew     POST /v1/turns/{theirs}/ack       POST /v1/turns/{theirs}/release
POST /v1/tasks/mine/fork          POST /v1/tasks/theirs/fork        POST /v1/threads/conv-1/tell
POST /v1/threads/other/tell       GET  /v1/threads/conv-1/inbox     GET  /v1/threads/other/inbox
POST /v1/tasks/mine/notify        POST /v1/tasks/theirs/notify      GET  /v1/access
GET  /v1/tokens
POST /v1/codes                    POST /v1/codes/exchange           POST /v1/tokens
POST /v1/tokens/none/revoke       GET  /v1/codes                    POST /v1/access
GET  /v1/tasks/mine/timeline      GET  /v1/tasks/theirs/timeline    GET  /v1/tasks/mine/messages
GET  /v1/tasks/theirs/messages    POST /v1/tasks/bulk               GET  /v1/tasks/bulk
POST /v1/unknown                  GET  /v1/tasks/mine/cancel        POST /v1/stats
GET  /v1/schedules                POST /v1/threads/conv-1/schedules POST /v1/threads/other/schedules
POST /v1/schedules/none/cancel
"""
_WORDS = ROUTES.split()
READS = [(m, p) for m, p in zip(_WORDS[::2], _WORDS[1::2], strict=True) if m == "GET"]
WRITES = [(m, p) for m, p in zip(_WORDS[::2], _WORDS[1::2], strict=True) if m == "POST"]

# What a full caller gets: 200, unless it is named here.
FULL = {
    "GET /v1/tasks/mine/output": 409,  # a function has no log
    "GET /v1/tasks/theirs/output": 409,
    "GET /v1/threads/other/wake": 204,  # it is busy: a turn of it is open
    "GET /v1/unknown": 404,
    "GET /v1/servers/none/tools": 404,  # there is no such server
    "GET /v1/toolset?dialect=nobodys": 404,
    "GET /v1/stats?nonsense=1": 400,  # what it does not know, it says
    "GET /v1/tasks?statsu=running": 400,
    "GET /v1/tasks?q=stats:failed": 400,
    "GET /v1/tasks/mine/cancel": 405,
    "POST /v1/tasks": 400,  # an empty body names no work,
    "POST /v1/wait": 400,  # nothing to wait for,
    "POST /v1/cancel": 400,  # no thread
    "POST /v1/clear": 400,
    "POST /v1/purge": 400,
    "POST /v1/tasks/mine/resume": 400,  # and no prompt
    "POST /v1/tasks/theirs/resume": 400,
    "POST /v1/tasks/mine/send": 409,  # it has ended
    "POST /v1/tasks/theirs/send": 409,
    "POST /v1/tasks/mine/notify": 400,  # no text
    "POST /v1/tasks/theirs/notify": 400,
    "POST /v1/tasks/mine/answer": 400,  # no answer
    "POST /v1/tasks/theirs/answer": 400,
    "POST /v1/tasks/mine/fork": 400,
    "POST /v1/tasks/theirs/fork": 400,
    "POST /v1/tasks/mine/promote": 409,
    "POST /v1/tasks/theirs/promote": 409,
    "POST /v1/threads/conv-1/tell": 400,  # no moment
    "POST /v1/threads/other/tell": 400,
    "POST /v1/threads/conv-1/turns": 201,
    "POST /v1/threads/other/turns": 201,
    "POST /v1/turns/{theirs}/renew": 204,
    "POST /v1/turns/{theirs}/release": 204,
    "POST /v1/tasks/bulk": 400,  # no action
    "GET /v1/tasks/bulk": 404,  # no task has that name
    "POST /v1/unknown": 404,
    "POST /v1/stats": 405,
    "GET /v1/codes": 405,
    "POST /v1/access": 405,
    "POST /v1/codes": 201,
    "POST /v1/codes/exchange": 400,  # no code
    "POST /v1/threads/conv-1/schedules": 400,  # no text
    "POST /v1/threads/other/schedules": 400,
    "POST /v1/schedules/none/cancel": 404,
    "POST /v1/tokens": 400,  # no name
    "POST /v1/tokens/none/revoke": 404,
}
# About tokens: for the server's own user.
OWNERS = {
    "GET /v1/tokens": 403,
    "POST /v1/codes": 403,
    "POST /v1/tokens": 403,
    "POST /v1/tokens/none/revoke": 403,
}
# The token of conv-1 differs in this from a full caller. A body is looked at before a task.
BOUND = {
    **dict.fromkeys((f"{m} {p}" for m, p in READS if "theirs" in p or "other" in p or "b-2" in p), 404),
    "GET /v1/threads": 403,
    "POST /v1/wait": 200,  # it means its own thread
    "POST /v1/cancel": 200,
    "POST /v1/clear": 200,
    "POST /v1/purge": 403,
    "POST /v1/limits": 403,
    "POST /v1/tasks/theirs/cancel": 404,
    "POST /v1/tasks/theirs/send": 404,
    "POST /v1/tasks/theirs/promote": 404,
    "POST /v1/threads/other/turns": 404,
    "POST /v1/threads/other/tell": 404,
    "POST /v1/threads/other/unpark": 404,
    "POST /v1/threads/other/schedules": 404,
    **dict.fromkeys((f"POST {p}" for _, p in WRITES if "{theirs}" in p), 404),
    **OWNERS,
}
OPEN = ("GET /v1/health", "POST /v1/codes/exchange")
NOT_A_WRITE = {"POST /v1/unknown": 404, "POST /v1/stats": 405, "POST /v1/access": 405}
# A read-only token differs in this: it can do no POST at all, and starts no server to ask for its tools.
READER = {
    **dict.fromkeys((f"POST {p}" for _, p in WRITES), 403),
    **NOT_A_WRITE,
    **OWNERS,
    "GET /v1/servers/none/tools": 403,
    "POST /v1/codes/exchange": 400,
}
BOUND_READER = {**BOUND, **READER}
# The token for the question of `mine`: it reads that task, and answers.
ASKED = {
    **dict.fromkeys((f"{m} {p}" for m, p in [*READS, *WRITES]), 403),
    **NOT_A_WRITE,
    "GET /v1/tasks/mine": 200,
    "GET /v1/tasks/theirs": 404,
    "GET /v1/tasks/bulk": 404,
    "GET /v1/access": 200,
    "GET /v1/unknown": 404,
    "GET /v1/tasks/mine/cancel": 405,
    "GET /v1/codes": 405,
    "POST /v1/codes/exchange": 400,
    "POST /v1/tasks/mine/answer": 400,
    "POST /v1/tasks/theirs/answer": 404,
}


class Caller(NamedTuple):
    """How it asks, and what it gets beside what a full caller gets."""

    grant: Grant | None = None  # of a token that is given out for it

    prefix: Callable[[HttpDoor], str] = lambda door: ""
    headers: Callable[[HttpDoor], dict[str, str]] = lambda door: {}
    way: str = "tcp"
    reads: int | None = None  # None is what a full caller gets
    writes: int | None = None
    other: dict[str, int] = {}  # noqa: RUF012  a NamedTuple's default; nobody changes it
    health: int = 200
    exchange: int = 400  # an empty body has no code


def bearer(door: HttpDoor) -> dict[str, str]:
    return {"Authorization": f"Bearer {door.token}"}


CALLERS: dict[str, Caller] = {
    "unix socket, same user": Caller(way="unix"),
    "token": Caller(headers=bearer),
    "capability path": Caller(prefix=lambda door: f"/~{door.token}"),
    "own page with the token": Caller(headers=lambda door: {**bearer(door), "Origin": door.url}),
    "token, another user": Caller(headers=bearer, way="tcp of another user"),
    "no token, same user": Caller(writes=401),
    "no token, another user": Caller(way="tcp of another user", reads=401, writes=401),
    "foreign page": Caller(
        headers=lambda door: {"Origin": "http://evil.example"}, reads=401, writes=401, exchange=403
    ),
    "foreign page with the token": Caller(
        headers=lambda door: {**bearer(door), "Origin": "http://evil.example"}, writes=403, exchange=403
    ),
    "page of another port with the token": Caller(
        headers=lambda door: {**bearer(door), "Origin": "http://127.0.0.1:1"}, writes=403, exchange=403
    ),
    "form of a page with the token": Caller(
        headers=lambda door: {**bearer(door), "Content-Type": "text/plain"}, writes=415, exchange=415
    ),
    "rebinding page": Caller(
        headers=lambda door: {**bearer(door), "Host": "evil.example"}, reads=421, writes=421, health=421
    ),
    "wrong token": Caller(headers=lambda door: {"Authorization": "Bearer no"}, reads=401, writes=401),
    "wrong token, unix socket": Caller(
        headers=lambda door: {"Authorization": "Bearer no"}, way="unix", reads=401, writes=401
    ),
    "unix socket, another user": Caller(
        headers=bearer, way="unix of another user", reads=403, writes=403, health=403
    ),
    "token of the thread": Caller(
        headers=lambda door: {"Authorization": f"Bearer {door.thread_token('conv-1')}"}, other=BOUND
    ),
    "page that showed its code": Caller(grant=Grant(), other=OWNERS),
    "read-only token": Caller(grant=Grant("read"), other=READER),
    "read-only token, unix socket": Caller(grant=Grant("read"), way="unix", other=READER),
    "read-only token of the thread": Caller(grant=Grant("read", "conv-1"), other=BOUND_READER),
    "given token of the thread": Caller(grant=Grant("write", "conv-1"), other=BOUND),
    "token of a question": Caller(grant=Grant(question="mine"), other=ASKED),
    "foreign page with a read-only token": Caller(
        grant=Grant("read"),
        headers=lambda door: {"Origin": "http://evil.example"},
        other=READER,
        exchange=403,
    ),
    "own page without a token": Caller(
        headers=lambda door: {"Sec-Fetch-Site": "same-origin"}, reads=401, writes=401
    ),
    "token of the thread, unix socket": Caller(
        headers=lambda door: {"Authorization": f"Bearer {door.thread_token('conv-1')}"},
        way="unix",
        other=BOUND,
    ),
}


def expected(caller: Caller, method: str, path: str) -> int:
    """A refusal of the gate comes first; one for writing only where there is something to write."""
    name = f"{method} {path}"
    if name in OPEN and caller.health != 200:
        return caller.health
    if name == "GET /v1/health":
        return 200
    if name == "POST /v1/codes/exchange":
        return caller.exchange
    if caller.reads is not None:
        return caller.reads
    if method == "POST" and caller.writes is not None and name not in NOT_A_WRITE:
        return caller.writes
    return caller.other.get(name, FULL.get(name, 200))


@pytest.fixture
async def both(open_door: OpenDoor, places: Path, tasks: None) -> tuple[HttpDoor, Path]:
    return await open_door(socket=places / "http.sock"), places / "http.sock"


@pytest.mark.behaviour("P12", "H14")
@pytest.mark.parametrize("name", CALLERS)
async def test_every_route_answers_every_caller_as_the_table_says(
    name: str, both: tuple[HttpDoor, Path], mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    (door, socket), caller = both, CALLERS[name]
    if caller.way.endswith("of another user"):
        monkeypatch.setattr(client_limits, "peer_uid", lambda transport: os.geteuid() + 1)
    given: dict[str, str] = {}
    if caller.grant is not None:
        _, text = await door._tokens.issued.issue(caller.grant, "somebody")
        given = {"Authorization": f"Bearer {text}"}
    by_socket = caller.way.startswith("unix")
    client = over_socket(socket) if by_socket else over_tcp(door.url)
    found: dict[str, int] = {}
    async with client:
        for method, path in [*READS, *WRITES]:
            turn = await mt._runtime.open_turn("other", lease=600, limit=1)
            asked = path.format(theirs=turn.id) + (
                "?timeout=0" if method == "GET" and path.endswith(("/wait", "/wake")) else ""
            )
            headers = {"Content-Type": "application/json", **given, **caller.headers(door)}
            body = b"{}" if method == "POST" else None
            request = client.build_request(method, caller.prefix(door) + asked, headers=headers, content=body)
            answer = await client.send(request, stream=True)  # /v1/events has no end
            found[f"{method} {path}"] = answer.status_code
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.headers["access-control-allow-methods"] == "GET, OPTIONS"
            assert answer.headers["access-control-allow-headers"] == "Content-Type"
            await answer.aclose()
            await mt._runtime.close_turn(turn.id, failed=False)
    wanted = {f"{method} {path}": expected(caller, method, path) for method, path in [*READS, *WRITES]}
    assert found == wanted


@pytest.mark.behaviour("P12")
async def test_the_table_has_every_route(both: tuple[HttpDoor, Path]):
    asked = {f"{m} {p.partition('?')[0]}" for m, p in [*READS, *WRITES]}
    door, _ = both
    routes = door._serving._app.routes  # type: ignore[union-attr]
    names = {
        "/tasks/{id}": "/tasks/mine",
        "/task-groups/{id}": "/task-groups/b-1",
        "/batches/{id}": "/batches/b-1",
        "/threads/{id}": "/threads/conv-1",
        "{turn}": "{theirs}",
        "/servers/{name}": "/servers/none",
        "/tokens/{token}": "/tokens/none",
        "/schedules/{id}": "/schedules/none",
    }
    for path, endpoint in routes.items():
        for pattern, example in names.items():
            path = path.replace(pattern, example)
        for method in endpoint.handlers:
            assert f"{method} {path}" in asked
