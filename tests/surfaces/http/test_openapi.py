"""/v1/openapi.json is made from the table of routes, and proven: what it says is what the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from tests.waiting import LIMIT

from meantime import Agent, Call, Shell
from meantime.app.ledger_owner import LedgerOwner
from meantime.blocking import HttpDoor, Meantime
from meantime.kernel.work import Order
from meantime.surfaces.http.long_polls import Poll
from meantime.surfaces.http.openapi import document
from meantime.surfaces.http.schemas import STATUS_WORDS, Body
from meantime.surfaces.http.task_encoding import words
from meantime.surfaces.http.task_schemas import WireProgress, WireTask
from meantime.testing import FakeSessionRunner, Reply

pytestmark = pytest.mark.breadth

DOCUMENT: dict[str, Any] = json.loads(document())
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
OPERATIONS = [
    found.ok()  # pyright: ignore[reportAttributeAccessIssue]
    for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    if found.ok().path != "/v1/events"  # a stream that never ends; tests/surfaces/http/test_event_stream.py  # pyright: ignore[reportAttributeAccessIssue]
]


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("no")


@pytest.fixture(scope="module")
def harmless() -> Iterator[None]:
    """What is asked for happens: so no command is run as it is given, and no wait is long."""

    def true(self: LedgerOwner, command: object, **how: object) -> Order:
        return Shell(["true"]).order()

    first = Poll.first

    async def soon(self: Poll, work: Any, seconds: float | None = None) -> Any:
        return await first(self, work, seconds and min(seconds, 0.02))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LedgerOwner, "command", true)
        patch.setattr(Poll, "first", soon)
        yield


@pytest.fixture(scope="module")
def door(harmless: None) -> Iterator[HttpDoor]:
    with a_door() as door:
        yield door


@pytest.fixture(scope="module")
def battered(harmless: None) -> Iterator[HttpDoor]:
    """For whatever is asked: what there was may be cleared, cancelled or purged."""
    with a_door() as door:
        yield door


@contextmanager
def a_door() -> Iterator[HttpDoor]:
    """With a task of every kind, so that answers have something to show."""
    agents = FakeSessionRunner({"explore": Reply("found it", tools=("read",))})
    with Meantime.open(":memory:", runners=[agents]) as mt, mt.serve(port=0) as door:
        thread = mt.thread("conv-1")
        ended = [
            thread.start(Agent("explore", "look"), id="agent", batch="b-1", description="Look"),
            thread.start(Call(broken), id="bad", batch="b-1"),
            thread.start(Shell("echo hello; exit 3"), id="cmd"),
        ]
        thread.start(Call(forever), id="busy")
        for handle in ended:
            handle.wait()
        yield door


# Any text is a legal id, so only a query or a body can be wrong.
ASKED = [(operation, GenerationMode.POSITIVE) for operation in OPERATIONS]
ASKED += [
    (operation, GenerationMode.NEGATIVE) for operation in OPERATIONS if operation.query or operation.body
]


@pytest.mark.behaviour("H7", "H11")
@pytest.mark.parametrize(
    ("operation", "mode"), ASKED, ids=lambda value: getattr(value, "label", None) or value.value
)
@pytest.mark.parametrize("times", [5, pytest.param(25, marks=pytest.mark.breadth)])
def test_whatever_is_asked_the_answer_is_described(
    battered: HttpDoor, operation: Any, mode: GenerationMode, times: int
):
    @settings(
        max_examples=times,
        derandomize=True,
        deadline=None,
        suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType]
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        headers = {"Authorization": f"Bearer {battered.token}"}
        case.call_and_validate(base_url=battered.url, headers=headers, checks=CHECKS)

    ask()


@pytest.mark.behaviour("H7", "H11")
@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/v1/tasks", "TaskPage"),
        ("/v1/tasks/agent", "TaskDetail"),
        ("/v1/tasks/bad", "TaskDetail"),
        ("/v1/tasks/cmd", "TaskDetail"),
        ("/v1/tasks/busy", "TaskDetail"),
        ("/v1/tasks/nobody", "Error"),
        ("/v1/task-groups/b-1", "TaskGroup"),
        ("/v1/health", "Health"),
        ("/v1/stats", "Stats"),
        ("/v1/info", "Info"),
        ("/v1/toolset", "Toolset"),
        ("/v1/batches/b-1", "Batch"),
        ("/v1/threads/conv-1", "ThreadDetail"),
    ],
)
def test_real_answers_have_exactly_the_described_fields(door: HttpDoor, path: str, schema: str):
    answer = httpx.get(door.url + path, timeout=LIMIT).json()
    described = DOCUMENT["components"]["schemas"][schema]
    if schema == "Error":
        assert set(described["required"]) <= set(answer) <= set(described["properties"])
    else:
        assert set(answer) == set(described["properties"]) == set(described["required"])


def test_what_is_told_has_exactly_the_described_fields(door: HttpDoor):
    headers = {"Authorization": f"Bearer {door.token}"}
    turn = httpx.post(f"{door.url}/v1/threads/conv-1/turns", json={}, headers=headers, timeout=LIMIT).json()
    schemas = DOCUMENT["components"]["schemas"]
    assert set(turn) == set(schemas["Turn"]["properties"])
    assert turn["notices"]
    for notice in turn["notices"]:
        assert set(notice) == set(schemas["Notice"]["properties"])
        assert set(notice["message"]) == set(schemas["Message"]["properties"])
    httpx.post(f"{door.url}/v1/turns/{turn['turn']}/release", json={}, headers=headers, timeout=LIMIT)


GOOD: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("POST /v1/tasks", {}, {"command": ["true"], "thread": "good", "id": "good", "env": {"A": None}}),
    ("POST /v1/tasks", {}, {"agent": "explore", "prompt": "look", "thread": "good", "id": "looked"}),
    ("POST /v1/wait", {}, {"ids": ["good", "looked"], "until": "all", "timeout": 0}),
    ("POST /v1/tasks/{id}/cancel", {"id": "good"}, {"reason": "enough", "wait": True}),
    ("POST /v1/cancel", {}, {"thread": "good", "descendants": True}),
    ("POST /v1/threads/{id}/turns", {"id": "good"}, {"lease": 5, "limit": 10}),
    ("POST /v1/threads/{id}/unpark", {"id": "good"}, {}),
    ("POST /v1/turns/{turn}/boundary", {}, {"limit": 10}),
    ("POST /v1/turns/{turn}/renew", {}, {}),
    ("POST /v1/turns/{turn}/ack", {}, {"notices": [], "reads": ["good.1"]}),
    ("POST /v1/turns/{turn}/release", {}, {"failed": False}),
    ("POST /v1/limits", {}, {"perThread": 10, "total": 50, "perKind": {"agent": 5}, "onLimit": "queue"}),
    ("POST /v1/tasks/bulk", {}, {"action": "clear", "ids": ["good"], "expect": 1}),
    ("POST /v1/clear", {}, {"thread": "good", "ids": ["good"], "olderThan": 0}),
    ("POST /v1/purge", {}, {"ids": ["good"]}),
    ("POST /v1/purge", {}, {"endedBefore": 1e9, "statuses": ["error", "cancelled"]}),
]


def test_what_is_written_well_is_done_and_answered_as_described(door: HttpDoor):
    operations = {operation.label: operation for operation in OPERATIONS}
    headers = {"Authorization": f"Bearer {door.token}"}
    turn = ""
    for label, path, body in GOOD:
        case = operations[label].Case(path_parameters=path or {"turn": turn}, body=body, headers=headers)
        answer = case.call_and_validate(base_url=door.url, checks=CHECKS)
        assert answer.status_code in (200, 201, 204), (label, answer.text)
        if label.endswith("/turns"):
            turn = answer.json()["turn"]
            # Its holder is a host that has not said how it is told.
            held = operations["GET /v1/threads/{id}"].Case(path_parameters=path, headers=headers)
            held.call_and_validate(base_url=door.url, checks=CHECKS)


def test_the_description_has_every_route_and_no_other(door: HttpDoor):
    found = door._target._serving._app.routes  # pyright: ignore[reportAttributeAccessIssue]
    routes = {path: {method.lower() for method in endpoint.handlers} for path, endpoint in found.items()}
    assert routes == {path: set(methods) for path, methods in DOCUMENT["paths"].items()}
    assert list(routes) == list(DOCUMENT["paths"])


def test_the_description_has_every_word_for_a_status():
    assert set(STATUS_WORDS) == set(words())


HTTP = "meantime.surfaces.http."


def test_the_description_has_every_field_of_every_body_and_no_other():
    # Other protocols have bodies of the same kind, which may be loaded, too.
    ours = [kind for kind in Body.__subclasses__() if kind.__module__.startswith(HTTP)]
    bodies = {kind.__name__: kind for kind in ours}
    named = {name for name in DOCUMENT["components"]["schemas"] if name.endswith("Body")}
    assert set(bodies) == named
    for name, kind in bodies.items():
        schema = DOCUMENT["components"]["schemas"][name]
        fields = msgspec.structs.fields(kind)
        assert [field.encode_name for field in fields] == list(schema["properties"]), name
        assert [field.encode_name for field in fields if field.required] == schema["required"], name
        assert schema["additionalProperties"] is False


def test_every_post_names_its_body_and_needs_a_token():
    for path, methods in DOCUMENT["paths"].items():
        if "post" in methods:
            open_to_all = path == "/v1/codes/exchange"  # its code is what it needs
            assert methods["post"]["security"] == ([{}] if open_to_all else [{"bearer": []}]), path
            schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
            assert schema["$ref"].endswith("Body"), path


def test_the_description_has_every_field_of_the_wire_and_no_other():
    schemas = DOCUMENT["components"]["schemas"]
    for shape, name in ((WireTask, "Task"), (WireProgress, "Progress")):
        fields = [field.encode_name for field in msgspec.structs.fields(shape)]
        assert fields == list(schemas[name]["properties"]) == schemas[name]["required"]


def test_the_description_is_served(door: HttpDoor):
    assert httpx.get(f"{door.url}/v1/openapi.json", timeout=LIMIT).json() == DOCUMENT
