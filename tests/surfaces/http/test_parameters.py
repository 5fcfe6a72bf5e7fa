"""A query parameter that is not known is an error that names it: silence would answer another question."""

from __future__ import annotations

import httpx
import pytest

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("H7")
async def test_an_unknown_parameter_is_named_with_what_was_meant(http: httpx.AsyncClient):
    answer = await http.get("/v1/tasks?statsu=running")
    assert answer.status_code == 400
    problem = answer.json()
    assert problem["code"] == "unknown_parameter"
    assert "statsu" in problem["error"] or "statsu" in problem.get("message", "")
    assert "status" in problem["hint"]


async def test_all_of_them_are_named(http: httpx.AsyncClient):
    text = (await http.get("/v1/stats?b=1&a=2")).text
    assert "a, b" in text
    assert "There are none here" in text


@pytest.mark.behaviour("H7")
async def test_the_parameters_of_the_seed_go_on_working(http: httpx.AsyncClient):
    seed = "status=running,completed&agent=explore&search=x&limit=10&offset=0"
    assert (await http.get(f"/v1/tasks?{seed}")).status_code == 200


async def test_also_for_writes(write: httpx.AsyncClient):
    answer = await write.post("/v1/tasks?thread=conv-1", json={"command": "true"})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter")
