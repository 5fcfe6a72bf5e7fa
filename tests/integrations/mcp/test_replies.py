"""Servers that print garbage, answer twice, answer others, answer too much or not soundly."""

from __future__ import annotations

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, Meantime, Thread, Tool
from outcomes import completed, failed

from .conftest import PATIENT, Peer, ended

pytestmark = pytest.mark.anyio


async def test_garbage_between_messages_is_passed_over(thread: Thread):
    assert completed(await ended(thread, "s/garbage")).result == "after the noise"
    assert completed(await ended(thread, "s/echo", text="well")).result == "well"


async def test_a_reply_that_comes_twice_counts_once(thread: Thread):
    assert completed(await ended(thread, "s/twice")).result == "first"
    assert completed(await ended(thread, "s/echo", text="well")).result == "well"


async def test_replies_to_nobody_reach_nobody(thread: Thread, peer: Peer):
    """One of them has the id that the next request will have: it comes before that is sent."""
    assert completed(await ended(thread, "s/strangers", next=True)).result == "yours"
    assert completed(await ended(thread, "s/echo", text="mine")).result == "mine"


@pytest.mark.breadth
async def test_twenty_megabytes_are_spilled(thread: Thread):
    task = await ended(thread, "s/big", bytes=20_000_000)
    assert completed(task).result is None
    assert task.outcome.spill.bytes == 20_000_000
    assert len(await thread.result(task)) == 20_000_000


@pytest.mark.breadth
async def test_more_than_that_is_that_calls_failure_and_no_other(thread: Thread, peer: Peer):
    waiting = await thread.start(Tool("s/gate"))
    await until_async(lambda: peer.lines("waiting"), "the server has the call")
    outcome = (await ended(thread, "s/big", bytes=40_000_000)).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, "more than 32 MB" in outcome.message) == ("bad_reply", True)
    peer.open_gate()
    (task,) = await thread.wait(waiting, timeout=LIMIT)
    assert completed(task).result == "through"
    assert len(peer.pids) == 1


@pytest.mark.breadth
@pytest.mark.parametrize("depth", [100, 100_000])
async def test_a_reply_of_great_depth_ends_the_call(thread: Thread, depth: int):
    """What the parser takes is bounded in the ledger; what it does not take is a failure."""
    task = await ended(thread, "s/deep", depth=depth)
    if depth == 100:
        assert completed(task).lossy
    else:
        assert failed(task).code == "bad_reply"


async def test_a_reply_that_is_cut_off_is_a_failure(thread: Thread):
    assert failed(await ended(thread, "s/broken")).code == "bad_reply"


async def test_noise_before_the_first_message(peer: Peer, era: bool):
    server = peer.server("noisy", modern=era)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        assert completed(await ended(mt.thread("a"), "s/echo", text="well")).result == "well"
