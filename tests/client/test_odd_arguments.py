"""Whatever a verb is given, a connected process hears the same as the owner itself: an answer, or an
error of the same class and code, and always one of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Agent, Call, Meantime, MeantimeError, Shell, background
from meantime.kernel.limits import Limits
from meantime.link.verb_messages import CATALOG_VERBS, VERBS
from meantime.ports.tasks import Options
from meantime.testing import FakeSessionRunner
from meantime.toolset.owner_catalog import OwnerCatalog

from .pair import Pair

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
NAN, INF = float("nan"), float("inf")
NUMBERS = [NAN, INF, -1, 0, 2**70, True, 1.5]
TEXTS = ["x" * 200, "", "../x", "\ud800", b"x", "done", "nope"]
ODD = [None, *NUMBERS, *TEXTS, [], {}, object(), ["done"], [None], [1]]


@background
def tripled(number: int) -> int:
    return 3 * number


ORDER = Call(int, "1").order()
RIGHT: dict[str, dict[str, Any]] = {
    "start": {"thread": "a", "order": ORDER, "options": Options()},
    "call": {"thread": "a", "order": ORDER, "options": Options(), "threshold": None},
    "calls": {"thread": None},
    "promote": {"ref": "done", "thread": None},
    "get": {"ref": "done", "thread": None},
    "list": {"thread": "a", "statuses": None, "batch": None, "history": False, "limit": 5, "offset": 0},
    "runs_of": {"ref": "done", "thread": None},
    "details": {"ref": "done", "thread": None},
    "position": {"ref": "done", "thread": None},
    "output": {"ref": "done", "thread": None, "wait": 0, "turn": None},
    "read": {"ref": "said", "thread": None, "stream": "both", "offset": 0, "limit": 10},
    "tail": {"ref": "said", "thread": None, "stream": "both", "lines": 1, "limit": 10},
    "wait_output": {"ref": "said", "thread": None, "stream": "both", "seen": 0},
    "notify": {"ref": "said", "thread": None, "text": "x"},
    "send": {"ref": "said", "thread": None, "data": "x", "eof": False},
    "lines": {"ref": "agent", "thread": None, "kinds": [], "roles": [], "last": None},
    "line_page": {"ref": "agent", "thread": None, "offset": 0, "most": 1 << 20},
    "answer": {"ref": "agent", "thread": None, "text": "yes", "scope": None, "by": "user", "question": None},
    "result": {"ref": "done", "thread": None},
    "wait": {"refs": ["done"], "thread": None, "until": "all", "timeout": None, "turn": None},
    "cancel": {"ref": "done", "thread": None, "by": "x", "reason": "", "wait": False, "turn": None},
    "cancel_all": {"thread": "z", "batch": None, "descendants": False, "by": "u"},
    "clear": {"thread": "z", "refs": None, "batch": None, "older_than": 0.0},
    "purge": {"refs": []},
    "retry": {"ref": "done", "thread": None},
    "remind": {"thread": "a", "text": "x", "at": None, "delay": 3600, "tool_call_id": None},
    "schedules": {"thread": None, "limit": 5, "offset": 0},
    "cancel_schedule": {"id": "s_0000000000", "thread": None},
    "resume": {"ref": "done", "thread": None, "prompt": "x", "options": Options()},
    "batch": {"id": "b", "thread": None},
    "reminder": {"thread": "a"},
    "open_turn": {"thread": "t", "lease": None, "limit": 1},
    "boundary": {"turn": "nope", "limit": 1, "thread": None},
    "ack": {"turn": "nope", "notices": [], "entries": [], "reads": [], "thread": None},
    "renew": {"turn": "nope", "thread": None},
    "close_turn": {"turn": "nope", "failed": False, "thread": None},
    "unpark": {"thread": "a", "notices": None},
    "attendance": {"thread": "a"},
    "inbox": {"thread": "a", "before": None, "limit": 5},
    "notices": {"thread": None, "states": ["unread"]},
    "count_notices": {"thread": None, "states": ["unread"]},
    "append": {"thread": "q", "entries": []},
    "transcript": {"thread": "q"},
    "has_entry": {"thread": "q", "notice": "n"},
    "events": {"after": 0, "limit": 5},
    "wait_events": {"after": 0},
    "last_event": {},
    "stats": {},
    "tools": {"server": "none"},
    "threads": {"limit": 5},
    "thread": {"id": "a"},
    "statistics": {"thread": None},
    "row_facts": {"ids": ["done"]},
    "overview": {"thread": None},
    "set_limits": {"limits": Limits()},
    "agents": {},
    "registered_tools": {},
    "start_tool": {"thread": "a", "name": "tripled", "arguments": {"number": 1}, "options": Options()},
}
ELSEWHERE = {"adopt", "wait_wake", "page"}  # with their own tests; a page's query is made by our doors


def test_every_verb_is_tried():
    assert set(RIGHT) | ELSEWHERE == set(VERBS)


def odd(verb: str) -> list[tuple[str, Any, dict[str, Any]]]:
    """Each argument, and each field of those that have fields, once with each odd value."""
    right, found = RIGHT[verb], []
    for name, value in right.items():
        if name == "order":
            continue
        for strange in ODD:
            if name == "options" and verb == "resume":
                found.append(("timeout", strange, {**right, name: Options(timeout=strange)}))
            elif isinstance(value, Options | Limits):
                fields = set(type(value).__struct_fields__) - {"executor"}
                found += [(f, strange, {**right, name: type(value)(**{f: strange})}) for f in sorted(fields)]
            else:
                found.append((name, strange, {**right, name: strange}))
    return found


async def heard(tasks: Any, verb: str, given: dict[str, Any]) -> tuple[str, str]:
    try:
        async with asyncio.timeout(LIMIT):
            answer = await getattr(tasks, verb)(**given)
    except MeantimeError as problem:
        return type(problem).__name__, problem.code
    if verb == "open_turn":
        await tasks.close_turn(answer.id, failed=False)
    return "answered", ""


async def prepare(mt: Meantime) -> None:
    for id, work in (("done", Call(int, "1")), ("said", Shell("echo hi")), ("agent", Agent("x", "y"))):
        await (await mt.thread("a").start(work, id=id, batch="b")).wait()


def _served(owner: Meantime, verb: str) -> Any:
    assert owner._owner is not None
    return OwnerCatalog(owner._runtime, owner._owner) if verb in CATALOG_VERBS else owner._runtime


@pytest.mark.parametrize("verb", RIGHT)
async def test_the_same_is_heard(pair: Pair, tmp_path: Path, verb: str):
    async with Meantime.open(tmp_path / "own.db", runners=[FakeSessionRunner()]) as own:
        await prepare(own)
        await prepare(pair.owner)
        differences = []
        for name, strange, given in odd(verb):
            here, there = await heard(_served(own, verb), verb, given), await heard(pair.client, verb, given)
            # A function of a connected process cannot be started later: it is not stored.
            if here != there and not (name in ("at", "delay") and there[1] == "not_storable"):
                differences.append(f"{name}={strange!r}: {here} here, {there} over the link")
            for owner in (own, pair.owner):
                await owner._runtime.set_limits(Limits())
        assert differences == []
