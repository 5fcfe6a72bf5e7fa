"""A server that dies, forgets or cannot be reached: nobody waits for it, and both ends come back."""

from __future__ import annotations

import asyncio
import time

from meantime.ports.carrier import MOST_BUFFERED

from ..suite.patience import PATIENCE, until, within
from .carrier_site import CarrierSite, Ends, OwnerEnd, WorkerEnd


async def both_ends_come_back_after_a_restart(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await _both_work(owner, worker, "before")
        await site.stop_server()
        await until(lambda: not owner.carrier.state.up, "the owner knows that the server is gone")
        await until(lambda: not worker.carrier.state.up, "the worker knows that the server is gone")
        assert owner.carrier.state.reason, "nobody says why it is down"
        await site.start_server()
        await _both_work(owner, worker, "after")
        for end in (owner, worker):
            assert [state.up for state in end.states][-1] is True, f"told {end.states}"
            assert False in [state.up for state in end.states], f"told {end.states}"


async def both_ends_come_back_after_a_cut(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await _both_work(owner, worker, "before")
        await site.cut_connections()
        await _both_work(owner, worker, "after")


async def a_pull_outlives_an_outage(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await owner.empty("red")
        pulling = await worker.begin_to_pull("red")
        await site.stop_server()
        await until(lambda: not worker.carrier.state.up, "the worker knows that the server is gone")
        await site.start_server()
        await owner.offer_until("red", "k1", b"", pulling.done)
        assert await pulling


async def an_emptied_server_gets_its_queues_again(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner("red", "blue"), await ends.worker()
        await _both_work(owner, worker, "before")
        for number in range(5):
            owner.carrier.offer("red", f"k{number}", b"")
        await site.stop_server()
        await site.empty_server()
        await site.start_server()
        await owner.empty("red")
        assert not await worker.pull("red"), "an offer came out of an empty queue"
        await _both_work(owner, worker, "after")


async def nothing_is_said_to_be_empty_without_the_server(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner = await ends.owner()
        await owner.empty("red")
        await site.stop_server()
        try:
            for _ in range(5):
                assert not await owner.carrier.is_empty("red"), "empty, though the server is gone"
        finally:
            await site.start_server()
        await owner.empty("red")


async def sends_do_not_wait_for_a_server_that_is_gone(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await site.stop_server()
        try:
            began = time.monotonic()  # thousands of sends: even short waits would add up to more
            for number in range(3 * MOST_BUFFERED):
                owner.carrier.offer("red", f"k{number}", b"x" * 1000)
                owner.carrier.to_worker("w1", b"x" * 1000)
                worker.carrier.to_owner(b"x" * 1000)
            assert owner.carrier.dropped >= 4 * MOST_BUFFERED, f"dropped: {owner.carrier.dropped}"
            assert worker.carrier.dropped >= 2 * MOST_BUFFERED, f"dropped: {worker.carrier.dropped}"
            assert time.monotonic() - began < PATIENCE, "a send waited"
            assert await within(worker.carrier.pull("red", 1, 0.3), "the end of a short pull") == []
        finally:
            await site.start_server()
        await worker.drain(owner, "red")
        await _both_work(owner, worker, "after")


async def ends_open_before_their_server(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        await site.stop_server()
        owner, worker = await asyncio.gather(ends.owner(), ends.worker())
        assert not owner.carrier.state.up
        assert owner.carrier.state.reason, "nobody says why it is down"
        await site.start_server()
        await _both_work(owner, worker, "after")


async def close_leaves_nothing(site: CarrierSite) -> None:
    before = asyncio.all_tasks()
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await _both_work(owner, worker, "before")
        pulling = await worker.begin_to_pull("red")
        for end in (worker, owner):
            await within(end.carrier.close(), "a close")
            await within(end.carrier.close(), "a second close")
            assert not end.carrier.state.up
        assert await within(pulling, "the end of the pull, after the close") == []
        assert not owner.carrier.offer("red", "k1", b""), "a closed carrier took an offer"
        assert not worker.carrier.to_owner(b""), "a closed carrier took a message"
        assert not await owner.carrier.is_empty("red")
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    assert not left, f"left running: {left}"


async def close_does_not_wait_for_a_server_that_is_gone(site: CarrierSite) -> None:
    async with Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker()
        await site.stop_server()
        try:
            await within(owner.carrier.close(), "the owner's close")
            await within(worker.carrier.close(), "the worker's close")
        finally:
            await site.start_server()


async def _both_work(owner: OwnerEnd, worker: WorkerEnd, word: str) -> None:
    """Everything travels: an offer, and a message in each direction."""
    data = word.encode()
    await owner.say_until("w1", data, lambda: data in worker.received)
    await worker.say_until(data, lambda: ("w1", data) in owner.received)
    async with worker.working("red"):
        await owner.offer_until("red", word, data, lambda: any(o.key == word for o in worker.pulled))
        await owner.empty("red")


CHECKS = (
    both_ends_come_back_after_a_restart,
    both_ends_come_back_after_a_cut,
    a_pull_outlives_an_outage,
    an_emptied_server_gets_its_queues_again,
    nothing_is_said_to_be_empty_without_the_server,
    sends_do_not_wait_for_a_server_that_is_gone,
    ends_open_before_their_server,
    close_leaves_nothing,
    close_does_not_wait_for_a_server_that_is_gone,
)
