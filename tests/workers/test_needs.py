"""What a task needs of a worker: its pool, labels, the kind of work and the function. Work that nobody can
perform holds up nobody, says why it waits, and has failed after a while."""

from __future__ import annotations

from typing import Any

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Agent, Call, Handle, InvalidInput, Settings, Shell, Status, Tool
from meantime.kernel.placement import MOST_LABELS, check_labels, check_place
from meantime.kernel.pool_slots import Need, need_of
from meantime.kernel.row_facts import now_line
from meantime.workers.capabilities import MOST_NAMES, Capability, advertised, has_function, missing

from . import jobs
from .conftest import JOBS, PLACE, Site

A100 = "pool:default?gpu=a100"
ADD = Need(PLACE, "call", f"{JOBS}:add")


async def _line(site: Site, id: str) -> str:
    (facts,) = await site.mt._runtime.row_facts([id])
    return now_line(await site.mt.get(id), facts)


# -- labels


@pytest.mark.anyio
async def test_only_a_worker_with_the_labels_claims_a_task(site: Site):
    mt = await site.open()
    await site.worker("plain")
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=A100)
    other = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    assert await other.result(LIMIT) == 3  # what waits for a label holds up nobody
    assert await _line(site, handle.id) == (
        "waits: no worker of pool default has the label gpu=a100 (plain cannot)"
    )
    await site.worker("big", labels={"gpu": "a100", "zone": "b"})
    task = await handle.wait(LIMIT)
    assert task.run.claim is not None
    assert task.run.claim.worker == "big"


@pytest.mark.anyio
async def test_a_configured_place_can_name_labels(site: Site):
    mt = await site.open(place={"shell": "pool:default?zone=b&gpu=a100"})
    await site.worker("plain")
    await site.worker("big", labels={"gpu": "a100", "zone": "b"})
    task = await (await mt.thread("a").start(Shell("true"))).wait(LIMIT)
    assert (task.place, task.run.claim and task.run.claim.worker) == (A100 + "&zone=b", "big")


@pytest.mark.parametrize(
    "place",
    [
        "pool:gpu?",
        "pool:gpu?gpu",
        "pool:gpu?gpu=",
        "pool:gpu?gpu=a&gpu=b",
        "pool:gpu?a=b?c=d",
        "pool:gpu?a b=c",
        "pool:gpu?" + "&".join(f"l{n}=1" for n in range(MOST_LABELS + 1)),
        "pool:gpu?a=" + "x" * 65,
        "pool:" + "x" * 3_000,
    ],
)
def test_a_bad_place_is_refused_with_what_to_write(place: str):
    with pytest.raises(InvalidInput):
        check_place(place)


def test_the_same_labels_are_the_same_place():
    assert check_place("pool:gpu?b=2&a=1") == check_place("pool:gpu?a=1&b=2") == "pool:gpu?a=1&b=2"


def test_bad_labels_of_a_worker_are_refused():
    for labels in ({"a b": "1"}, {"a": ""}, {"a": 1}, {f"l{n}": "1" for n in range(MOST_LABELS + 1)}):
        with pytest.raises(InvalidInput):
            check_labels(labels)


# -- what cannot be placed at all


@pytest.mark.anyio
@pytest.mark.parametrize("work", [Agent("writer", "hello"), Tool("server/tool")], ids=["agent", "tool"])
async def test_agents_and_tools_are_refused_at_the_start(site: Site, work: Agent | Tool):
    from meantime import Meantime
    from meantime.testing import FakeSessionRunner

    opening = Meantime.open(":memory:", carrier=site.broker.owner(), runners=[FakeSessionRunner()])
    async with opening as mt:
        with pytest.raises(InvalidInput, match="run at the owner of the ledger") as caught:
            await mt.thread("a").start(work, place=PLACE)
    assert caught.value.code == "not_placeable"


@pytest.mark.parametrize("key", ["agent", "tool", "agent:writer"])
def test_a_place_of_work_that_stays_with_the_owner_is_refused_when_it_is_configured(key: str):
    from meantime.kernel.constraints import check_fields

    with pytest.raises(InvalidInput, match="runs at the owner"):
        check_fields(Settings(place={key: PLACE}))


# -- work that nobody can perform


@pytest.mark.anyio
async def test_a_function_that_nobody_has_holds_up_nobody(site: Site):
    mt = await site.open()
    await site.worker(slots=1)
    thread = mt.thread("a")
    unknown = [await thread.start(Call(jobs_elsewhere), place=PLACE) for _ in range(5)]
    assert await (await thread.start(Call(jobs.add, 1, 2), place=PLACE)).result(LIMIT) == 3
    assert {(await one.get()).status for one in unknown} == {Status.QUEUED}
    assert "no worker of pool default has the function" in await _line(site, unknown[0].id)
    (need,) = mt._owner.about().unmet
    assert (need.place, need.kind, need.waiting) == (PLACE, "call", 5)
    assert not site.broker._queues["default"]  # nothing of it was offered
    await thread.cancel_all()


def jobs_elsewhere() -> None:
    """A function of a module that no worker lists."""


@pytest.mark.breadth
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("pool:gpu", "there is no worker of pool gpu"),
        (A100, "no worker of pool default has the label gpu=a100"),
        (PLACE, "no worker of pool default has the function"),
    ],
)
async def test_work_that_nobody_can_perform_has_failed_after_a_while(site: Site, place: str, reason: str):
    mt = await site.open(worker_wait=10.0)
    await site.worker()
    await until_async(lambda: site.pools.about(), "the owner knows the worker")
    handle = await mt.thread("a").start(Call(jobs_elsewhere), place=place)
    site.pass_time(14.0)
    task = await handle.wait(LIMIT)
    assert (task.status, task.outcome and getattr(task.outcome, "code", "")) == (Status.FAILED, "no_worker")
    assert reason in str(task.outcome)
    assert (await mt.stats())["workers.no_worker"] == 1
    async with mt.thread("a").turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [task.id]
        await turn.ack()


@pytest.mark.breadth
@pytest.mark.anyio
async def test_work_that_waits_for_a_slot_only_never_fails_for_want_of_a_worker(site: Site):
    mt = await site.open(worker_wait=10.0)
    await site.worker(slots=1)
    thread = mt.thread("a")
    first = await thread.start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: site.workers["w1"].state.running, "the run is under way")
    more = [await thread.start(Call(jobs.add, n, 0), place=PLACE) for n in range(5)]
    site.pass_time(14.0)  # longer than work may wait for a worker that is not there
    await stays_async(lambda: _are_queued(more), "all of them wait")
    (site.folder / "go").touch()
    assert (await first.wait(LIMIT)).status is Status.COMPLETED
    assert [await one.result(LIMIT) for one in more] == list(range(5))


async def _are_queued(handles: list[Handle[Any]]) -> bool:
    return {(await one.get()).status for one in handles} == {Status.QUEUED}


@pytest.mark.breadth
@pytest.mark.anyio
async def test_while_the_carrier_is_down_nobody_is_missing(site: Site):
    mt = await site.open(worker_wait=10.0)
    site.broker.stop()
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    site.pass_time(60.0)
    await stays_async(lambda: _are_queued([handle]), "it waits")
    site.broker.start()
    await site.worker()
    assert await handle.result(LIMIT) == 3


@pytest.mark.breadth
@pytest.mark.anyio
async def test_offers_that_nobody_is_left_to_claim_are_queued_again(site: Site):
    """Otherwise they would fill the queue of the pool, and what others can perform would not be offered."""
    mt = await site.open()
    leaving = await site.worker("w1", slots=2)
    thread = mt.thread("a")
    leaving.is_draining = True  # it is offered everything, and claims nothing
    handles = [await thread.start(Call(jobs.add, n, 0), place=PLACE) for n in range(4)]
    await site.worker("w2", slots=2, tools=[], shell=True)
    await site.lose("w1")
    await until_async(lambda: not site.pools.state.offers, "nothing is offered any more")
    assert (await (await thread.start(Shell("true"), place=PLACE)).wait(LIMIT)).status is Status.COMPLETED
    await site.worker("w3")
    assert [await one.result(LIMIT) for one in handles] == [0, 1, 2, 3]


# -- what workers say of themselves


def _worker(name: str = "w1", **given: object) -> Capability:
    fields = {"pool": "default", "slots": 1, "labels": {}, "kinds": ("call", "shell"), "draining": False}
    return Capability(name=name, **(fields | {"functions": frozenset({"a:f"})} | given))  # type: ignore[arg-type]


def test_a_worker_lists_a_limited_number_of_functions():
    many = tuple(f"module{n % 3}:function{n}" for n in range(MOST_NAMES + 1))
    assert advertised(many) == ("module0:*", "module1:*", "module2:*")
    assert advertised(tuple(f"m{n}:f" for n in range(MOST_NAMES + 1))) == ("*",)
    assert advertised(("m:" + "f" * 40_000,)) == ("m:*",)
    assert advertised(("b:g", "a:f")) == ("a:f", "b:g")


def test_a_wildcard_stands_for_the_functions_of_its_module_only():
    assert has_function(("a:*",), "a:f")
    assert not has_function(("a:*",), "ab:f")
    assert has_function(("*",), "ab:f")
    assert has_function((), "a:f")  # an older worker lists none


def test_an_unmet_need_says_what_those_miss_who_come_closest():
    other = _worker("w0", pool="gpu")
    need = Need("pool:default?zone=b", "call", "x:y")
    assert missing([other], need) == "there is no worker of pool default"
    assert missing([other, _worker()], need) == ("no worker of pool default has the label zone=b (w1 cannot)")
    near = _worker("w2", labels={"zone": "b"})
    assert missing([other, _worker(), near], need) == (
        "no worker of pool default has the function x:y (w1, w2 cannot)"
    )
    able = _worker("w3", labels={"zone": "b"}, functions=frozenset({"x:*"}), draining=True)
    assert "drain" in missing([able], need)
    crowd = [_worker(f"w{n}", kinds=("call",)) for n in range(9)]
    assert missing(crowd, Need(PLACE, "shell")) == (
        "no worker of pool default performs commands (w0, w1, w2 and 6 more cannot)"
    )


@pytest.mark.anyio
async def test_the_functions_of_a_worker_reach_the_owner(site: Site):
    await site.open()
    await site.worker(tools=[JOBS])
    await until_async(lambda: site.pools.state.slots_for(ADD), "the owner knows the function")
    assert site.pools.state.missing(ADD) == ""
    assert "has the function" in site.pools.state.missing(ADD._replace(name=f"{JOBS}:none"))


@pytest.mark.anyio
async def test_a_worker_that_may_perform_nothing_is_not_waited_for(site: Site):
    """It has joined and is not configured yet. Work would be offered to it for ever otherwise."""
    mt = await site.open()
    await site.worker("bare", tools=[], shell=False)
    for work, reason in ((Shell("true"), "performs commands"), (Call(jobs.add, 1, 2), "performs functions")):
        handle = await mt.thread("a").start(work, place=PLACE)
        need = need_of(await handle.get())
        await until_async(lambda: site.pools.about(), "the owner knows the worker")
        assert site.pools.state.slots_for(need) == 0
        assert site.pools.state.missing(need) == f"no worker of pool default {reason} (bare cannot)"
        await handle.cancel()
