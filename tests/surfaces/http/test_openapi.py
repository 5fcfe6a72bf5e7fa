"""/v1/openapi.json is kept by hand, and proven: what it says is what the door does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi import checks

from meantime import Agent, Call, Shell
from meantime.blocking import HttpDoor, Meantime
from meantime.surfaces.http.settings import HttpSettings
from meantime.surfaces.http.shapes import WireProgress, WireTask
from meantime.testing import FakeSessionRunner, Reply

DOCUMENT: dict[str, Any] = json.loads(files("meantime.surfaces.http").joinpath("openapi.json").read_bytes())
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
OPERATIONS = [
    found.ok()
    for found in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    if found.ok().path != "/v1/events"  # a stream that never ends; tests/surfaces/http/test_H12_events.py
]


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("no")


@pytest.fixture(scope="module")
def door() -> Iterator[HttpDoor]:
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


# Any text is a legal id, so only a query can be wrong.
ASKED = [(operation, GenerationMode.POSITIVE) for operation in OPERATIONS]
ASKED += [(operation, GenerationMode.NEGATIVE) for operation in OPERATIONS if operation.query]


@pytest.mark.parametrize(
    ("operation", "mode"), ASKED, ids=lambda value: getattr(value, "label", None) or value.value
)
def test_H7_H11_whatever_is_asked_the_answer_is_described(
    door: HttpDoor, operation: Any, mode: GenerationMode
):
    @settings(
        max_examples=25,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Case) -> None:
        case.call_and_validate(base_url=door.url, checks=CHECKS)

    ask()


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/v1/tasks", "TaskPage"),
        ("/v1/tasks/agent", "Task"),
        ("/v1/tasks/bad", "Task"),
        ("/v1/tasks/cmd", "Task"),
        ("/v1/tasks/busy", "Task"),
        ("/v1/tasks/nobody", "Error"),
        ("/v1/task-groups/b-1", "TaskGroup"),
        ("/v1/health", "Health"),
        ("/v1/stats", "Stats"),
    ],
)
def test_H7_H11_real_answers_have_exactly_the_described_fields(door: HttpDoor, path: str, schema: str):
    answer = httpx.get(door.url + path).json()
    assert set(answer) == set(DOCUMENT["components"]["schemas"][schema]["properties"]) - {"candidates"}


def test_the_description_has_every_route_and_no_other():
    routes = Routes(None, HttpSettings(), FakeClockLess(), None).table()  # type: ignore[arg-type]
    assert [route.path for route in routes] == list(DOCUMENT["paths"])


def test_the_description_has_every_field_of_the_wire_and_no_other():
    schemas = DOCUMENT["components"]["schemas"]
    for shape, name in ((WireTask, "Task"), (WireProgress, "Progress")):
        fields = [field.encode_name for field in msgspec.structs.fields(shape)]
        assert fields == list(schemas[name]["properties"]) == schemas[name]["required"]


def test_the_description_is_served(door: HttpDoor):
    assert httpx.get(f"{door.url}/v1/openapi.json").json() == DOCUMENT


class FakeClockLess:
    """The routes only ask when they were made."""

    def monotonic(self) -> float:
        return 0.0
