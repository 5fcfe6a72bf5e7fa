"""A query parameter that is not known is an error that names it: silence would answer another question."""

from __future__ import annotations

import httpx
import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


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


@pytest.mark.parametrize(
    ("asked", "error", "hint"),
    [
        ("tasks?limit=0", "limit='0' is not possible.", "Give a whole number from 1 to 1000000000."),
        ("tasks?limit=5.0", "limit='5.0' is not possible.", "Give a whole number from 1 to 1000000000."),
        ("tasks?offset=-1", "offset='-1' is not possible.", "Give a whole number from 0 to 1000000000."),
        ("tasks?offset=%D9%A3", "offset='٣' is not possible.", "Give a whole number from 0 to 1000000000."),
        ("tasks?sort=best", "sort='best' is unknown.", "Use one of: newest, oldest, updated, longest."),
        ("tasks?cleared=yes", "cleared='yes' is neither true nor false.", ""),
        (f"tasks?search={'x' * 1_001}", "search is longer than 1000 characters.", "Look for less."),
        ("threads/a/wake?timeout=601", "timeout='601' is not possible.", "Give seconds from 0 to 600."),
        ("threads/a/wake?timeout=1e2", "timeout='1e2' is not possible.", "Give seconds from 0 to 600."),
        ("threads/a/wake?timeout=nan", "timeout='nan' is not possible.", "Give seconds from 0 to 600."),
        ("threads?limit=1001", "limit='1001' is not possible.", "Give a whole number from 1 to 1000."),
        ("events?snapshot=x", "snapshot='x' is unknown.", "Use one of: all, bounded."),
    ],
)
async def test_a_wrong_value_is_named_with_what_is_possible(
    http: httpx.AsyncClient, asked: str, error: str, hint: str
):
    answer = await http.get(f"/v1/{asked}")
    found = answer.json()
    assert (answer.status_code, found["code"]) == (400, "invalid_input")
    assert (found["error"], found["hint"]) == (error, hint)


@pytest.mark.behaviour("H7")
@pytest.mark.parametrize("asked", ["status=running,bogus", "status=bogus"])
async def test_an_unknown_status_is_named_with_those_there_are(http: httpx.AsyncClient, asked: str):
    found = (await http.get(f"/v1/tasks?{asked}")).json()
    assert found["error"] == f"status={asked.removeprefix('status=')!r} names a status that is unknown."
    assert set(found["hint"].removeprefix("Use one of: ").rstrip(".").split(", ")) == {
        "running", "completed", "error", "cancelled", "resumed",
    }  # fmt: skip


@pytest.mark.behaviour("H7")
@pytest.mark.parametrize(
    "asked",
    ["limit=", "limit=007", "status=", "status=,running,", "cleared=TRUE", "sort=", "limit=1&limit=2"],
)
async def test_other_spellings_of_a_value_are_taken(http: httpx.AsyncClient, asked: str):
    assert (await http.get(f"/v1/tasks?{asked}")).status_code == 200
