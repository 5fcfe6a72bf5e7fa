"""Who may read: PROMISES.md, 'The HTTP door', rules 1, 2, 4 and 7. P12: private by default.

`test_every_reading_route_answers_every_caller_as_the_table_says` is the table; the rest are its single rules.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import anyio.to_thread
import pytest
from tests.waiting import LIMIT

from meantime import HttpDoor

from .asking import Headers, asking
from .conftest import OpenDoor

pytestmark = pytest.mark.anyio

CORS = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS",
    "access-control-allow-headers": "Content-Type",
}
ROUTES = [
    "/v1/tasks", "/v1/tasks/mine", "/v1/tasks/theirs", "/v1/tasks/mine/logs", "/v1/task-groups/b-1",
    "/v1/events", "/v1/stats", "/v1/openapi.json", "/v1/health", "/v1/unknown", "/nothing",
]  # fmt: skip


Caller = Callable[[HttpDoor], tuple[str, Headers]]
CALLERS: dict[str, Caller] = {
    "curl of the same user": lambda door: ("", {}),
    "token in a header": lambda door: ("", {"Authorization": f"Bearer {door.token}"}),
    "token in the path": lambda door: (f"/~{door.token}", {}),
    "page with the token": lambda door: (f"/~{door.token}", {"Origin": "http://evil.example"}),
    "token of a thread": lambda door: (f"/~{door.thread_token('conv-1')}", {}),
    "typed into a browser": lambda door: ("", {"Sec-Fetch-Site": "none"}),
    "page of another port": lambda door: (
        "",
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    ),
    "page of another site": lambda door: (
        "",
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    ),
    "page in a sandbox": lambda door: ("", {"Origin": "null"}),
    "image in a page": lambda door: ("", {"Sec-Fetch-Site": "cross-site"}),
    "proxy of the same user": lambda door: ("", {"X-Forwarded-For": "10.0.0.1"}),
    "wrong token": lambda door: ("", {"Authorization": "Bearer " + "0" * 64}),
    "wrong token in the path": lambda door: ("/~wrong", {}),
    "forged token of a thread": lambda door: ("/~conv-1~" + "0" * 64, {}),
    "password": lambda door: ("", {"Authorization": "Basic YTpi"}),
    "rebinding page": lambda door: ("", {"Host": f"evil.example:{door.port}"}),
    "rebinding page with the token": lambda door: (f"/~{door.token}", {"Host": "evil.example"}),
    "wrong port in Host": lambda door: ("", {"Host": "127.0.0.1:1"}),
    "no Host": lambda door: ("", {"Host": ""}),
}
ALL = dict.fromkeys(ROUTES, 200) | {"/v1/unknown": 404, "/nothing": 404}
NONE = dict.fromkeys(ROUTES, 401) | {"/v1/health": 200}
NOBODY = dict.fromkeys(ROUTES, 421)
EXPECTED = {
    **dict.fromkeys(list(CALLERS)[:4], ALL),
    "token of a thread": ALL | {"/v1/tasks/theirs": 404},
    "typed into a browser": ALL,
    **dict.fromkeys(list(CALLERS)[6:15], NONE),
    **dict.fromkeys(list(CALLERS)[15:], NOBODY),
}


@pytest.mark.breadth
@pytest.mark.behaviour("H13")
@pytest.mark.scenario("001", "Responses include CORS headers")
async def test_every_reading_route_answers_every_caller_as_the_table_says(
    door: HttpDoor, tasks: None, record_property: Callable[[str, object], None]
):
    table: dict[str, dict[str, int]] = {}
    for caller, made in CALLERS.items():
        prefix, headers = made(door)
        table[caller] = {}
        for route in ROUTES:
            answer = await asking(door, prefix + route, headers)
            table[caller][route] = answer.status
            assert {name: answer.headers.get(name) for name in CORS} == CORS, (caller, route)
            if answer.status not in (200, 204):
                assert {"error", "code", "hint"} <= set(json.loads(answer.body)), (caller, route)
    lines = [
        f"{caller:32}{' '.join(str(status) for status in row.values())}" for caller, row in table.items()
    ]
    shown = "\n".join([f"{'':32}{' '.join(ROUTES)}", *lines])
    record_property("routes by caller", shown)
    print(shown)  # noqa: T201  the table
    assert table == EXPECTED


@pytest.mark.behaviour("H13")
@pytest.mark.scenario("001", "OPTIONS preflight returns 204 with CORS headers")
@pytest.mark.parametrize("path", [*ROUTES, "/~wrong/v1/tasks"])
async def test_options_is_204_with_the_headers_and_never_lists_post(door: HttpDoor, path: str):
    preflight = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    answer = await asking(door, path, preflight, "OPTIONS")
    assert (answer.status, answer.body) == (204, b"")
    assert {name: answer.headers[name] for name in CORS} == CORS
    assert (await asking(door, path, {"Host": "evil.example"}, "OPTIONS")).status == 421


@pytest.mark.behaviour("H13")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_a_path_that_reads_cannot_be_written(door: HttpDoor, tasks: None, method: str):
    answer = await asking(door, "/v1/tasks/mine", {}, method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert json.loads(answer.body)["code"] == "read_only"
    assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.behaviour("H13")
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
async def test_our_own_host_names_are_accepted(door: HttpDoor, name: str):
    assert (await asking(door, "/v1/tasks", {"Host": f"{name}:{door.port}"})).status == 200
    assert (await asking(door, "/v1/tasks", {"Host": f"{name}.:{door.port}"})).status == 421


@pytest.mark.behaviour("H13")
async def test_more_host_names_are_accepted_by_setting(open_door: OpenDoor):
    door = await open_door(hosts=("Box.local:8080",))
    assert (await asking(door, "/v1/tasks", {"Host": "box.local:8080"})).status == 200
    assert (await asking(door, "/v1/tasks", {"Host": "box.local"})).status == 421


@pytest.mark.behaviour("H13")
async def test_strict_wants_a_token_from_everybody(open_door: OpenDoor):
    door = await open_door(auth="strict")
    assert (await asking(door, "/v1/tasks")).status == 401
    assert (await asking(door, "/v1/health")).status == 200
    assert (await asking(door, "/v1/tasks", {"Authorization": f"bearer {door.token}"})).status == 200


@pytest.mark.behaviour("P12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_of_this_machine_gets_nothing(door: HttpDoor, tasks: None):
    code = (  # what is imported later may not be readable to nobody
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        f"s = socket.socket(); s.settimeout({LIMIT}); s.connect(('127.0.0.1', {door.port}))\n"
        f"s.sendall(f'GET {{sys.argv[1]}} HTTP/1.1\\r\\nHost: 127.0.0.1:{door.port}\\r\\n\\r\\n'.encode())\n"
        "print(s.recv(12)[9:].decode())"
    )

    def as_nobody(path: str) -> str:
        run = [sys.executable, "-I", "-c", code, path]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    assert (await anyio.to_thread.run_sync(as_nobody, "/v1/tasks")).strip() == "401"
    assert (await anyio.to_thread.run_sync(as_nobody, f"/~{door.token}/v1/tasks")).strip() == "200"
